"""The README's examples as a user's files: they run, and run again in the same folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.kit.tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": programs},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def blocks(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, README, re.DOTALL)
    assert found is not None
    return found.groups()


def test_the_python_example(tmp_path: Path) -> None:
    code, output = blocks(r"```python\n(.*?)```\n\n```text\n(.*?)```")
    (tmp_path / "trips.py").write_text(code, encoding="utf-8")
    for _ in range(2):
        done = run(tmp_path, "python", "trips.py")
        assert done.returncode == 0, done.stderr
        assert done.stdout == output


def test_the_sql_example(tmp_path: Path) -> None:
    (command,) = blocks(r"```sh\n(JAR=.*?)```")
    code, output = blocks(r"```sql\n(.*?)```\n\n```text\n(.*?)```")
    (tmp_path / "visits.sql").write_text(code, encoding="utf-8")
    policy, refusal, *others = output.splitlines()
    for _ in range(2):
        done = run(tmp_path, "bash", "-ec", command)
        assert done.stdout.splitlines() == [policy], done.stderr
        assert "\n".join([refusal, *others]) in done.stderr
