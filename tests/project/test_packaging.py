"""The built artefacts: what the jar and the wheel hold, and what refuses to be built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import interlock
import pytest

from tests.kit.tree import ROOT

WHEEL = ROOT / "dist" / f"spark_interlock-{interlock.__version__}-py3-none-any.whl"


def test_the_jar_holds_our_classes_and_policies_and_nothing_else() -> None:
    names = [n for n in ZipFile(interlock.jar_path()).namelist() if not n.endswith("/")]
    ours = (
        "io/interlock/",
        "org/apache/spark/interlock/",
        "org/apache/spark/sql/catalyst/parser/SqlTokens",
        "org/apache/spark/sql/delta/interlock/",
    )
    assert [n for n in names if not n.startswith((*ours, "META-INF/"))] == []
    assert "io/interlock/policies/maxcompute_delta.policy" in names
    assert "META-INF/LICENSE" in names


def test_jar_and_wheel_have_constant_times() -> None:
    for path, year in ((interlock.jar_path(), 2010), (WHEEL, 2020)):
        assert {entry.date_time[0] for entry in ZipFile(path).infolist()} == {year}


def test_the_version_is_written_once() -> None:
    text = ZipFile(interlock.jar_path()).read("io/interlock/version.properties").decode()
    assert f"version={interlock.__version__}" in text.splitlines()
    assert f'version = "{interlock.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_the_wheel_holds_the_jar_and_its_types() -> None:
    names = ZipFile(WHEEL).namelist()
    jar = interlock.jar_path().name
    assert f"interlock/jars/{jar}" in names
    assert "interlock/py.typed" in names


OTHERS = [["interlock-spark_4.2_2.13-0.0.1.jar"], ["other.jar"]]


@pytest.mark.parametrize("jars", [[], *OTHERS], ids=["none", "an older one", "another"])
def test_a_wheel_with_other_jars_is_refused(tmp_path: Path, jars: list[str]) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "python" / "interlock"
    (package / "jars").mkdir(parents=True)
    (package / "__init__.py").touch()
    for jar in jars:
        (package / "jars" / jar).touch()
    build = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode != 0
    assert "run `make wheel`" in build.stderr
    assert not list(tmp_path.glob("dist/*.whl"))
