"""The README's examples as a user's files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.doc_examples import examples, masked
from tests.kit.sessions import submit_options
from tests.kit.spark_version import of_this_spark
from tests.kit.tree import ROOT

README = of_this_spark((ROOT / "README.md").read_text(encoding="utf-8"))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": programs, "SPARK_SUBMIT_OPTS": submit_options()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def blocks(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, README, re.DOTALL)
    assert found is not None
    return found.groups()


def python_example(folder: Path) -> None:
    """Run all blocks of Python as one file; each is followed by its output."""
    shown = [example for example in examples(README) if not example.is_sql]
    code = "\n".join(example.code for example in shown)
    (folder / "trips.py").write_text(code, encoding="utf-8")
    done = run(folder, "python", "trips.py")
    assert done.returncode == 0, done.stderr
    expected = "".join(example.output or "" for example in shown)
    assert masked(done.stdout) == masked(expected)


def without_the_policy(folder: Path) -> None:
    """What the README says of stock Delta."""
    code, _ = blocks(r"```python\n(.*?)```\n\n```text\n(.*?)```")
    (error,) = blocks(r"```text\n(\[DELTA_.*?)\n```")
    plain, properties = re.subn(r"\n +TBLPROPERTIES .*?\)", "", code)
    assert properties == 1
    (folder / "plain.py").write_text(f"{plain}    print(job.error)\n", encoding="utf-8")
    done = run(folder, "python", "plain.py")
    assert done.returncode == 0, done.stderr
    optimize, _, update, told, delete, told_too = done.stdout.splitlines()
    assert [line.split()[:2] for line in (optimize, update, delete)] == [
        ["ok", "OPTIMIZE"],
        ["LOST", "UPDATE"],
        ["LOST", "DELETE"],
    ]
    assert told == told_too == error


def sql_example(folder: Path) -> None:
    (command,) = blocks(r"```sh\n(JAR=.*?)```")
    code, output = blocks(r"```sql\n(.*?)```\n\n```text\n(.*?)```")
    (folder / "visits.sql").write_text(code, encoding="utf-8")
    policy, refusal, *others = output.splitlines()
    done = run(folder, "bash", "-ec", command)
    assert done.stdout.splitlines() == [policy], done.stderr
    assert "\n".join([refusal, *others]) in done.stderr


EXAMPLES = pytest.mark.parametrize("example", [python_example, without_the_policy, sql_example])


@pytest.mark.variant_cases("without_the_policy")
@EXAMPLES
def test_an_example_gives_what_the_readme_says(
    tmp_path: Path, example: Callable[[Path], None]
) -> None:
    example(tmp_path)


@pytest.mark.variant
@EXAMPLES
def test_an_example_runs_again_in_its_folder(
    tmp_path: Path, example: Callable[[Path], None]
) -> None:
    example(tmp_path)
    example(tmp_path)
