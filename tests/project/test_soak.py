"""A soak that goes on where it was. Needs no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import soak

TESTS = """import pathlib, pytest
@pytest.mark.parametrize("n", range(3))
def test_it(n):
    assert n != 1 or pathlib.Path(__file__).with_name("mended").exists()
@pytest.fixture
def left():
    yield
    assert pathlib.Path(__file__).with_name("mended").exists()
def test_with_fixture(left): pass
@pytest.mark.skip
def test_skipped(): pass
"""
PLUGIN = """import pathlib
from tests.kit import soak
def pytest_configure(config):
    notes = not hasattr(config, "workerinput")
    config.pluginmanager.register(soak.Soak(pathlib.Path({record!r}), notes=notes))
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_has_passed_is_left_out(tmp_path: Path, workers: str) -> None:
    record = tmp_path / "record" / "code.txt"
    (tmp_path / "test_file.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(PLUGIN.format(record=str(record)))

    def run() -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-c", "/dev/null"]
        command += ["--rootdir", str(tmp_path), str(tmp_path), "-p", "no:cacheprovider"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    first = run()
    assert "1 failed, 3 passed, 1 skipped, 1 error" in first
    assert sorted(soak.passed(record)) == ["test_file.py::test_it[0]", "test_file.py::test_it[2]"]
    assert f"2 have passed on this code: {record}" in first
    (tmp_path / "mended").touch()
    second = run()
    assert "2 passed, 1 skipped" in second
    assert f"4 have passed on this code: {record}" in second
    assert "1 skipped" in run()
    assert len(soak.passed(record)) == 4


def test_the_record_is_that_of_the_code(tmp_path: Path) -> None:
    """Other code has another record, and code that is not committed has none."""

    def git(*arguments: str) -> None:
        names = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def change(file: str, text: str) -> None:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)

    def record() -> Path | None:
        return soak.record_of(tmp_path / "records", tmp_path)

    git("init")
    change("jvm/Judge.scala", "one")
    assert record() is None
    git("add", ".")
    git("commit", "-m", "one")
    first = record()
    assert first is not None
    change("docs/judge.md", "one")
    assert record() == first
    change("jvm/Judge.scala", "two")
    assert record() is None
    git("commit", "-am", "two")
    assert record() not in (None, first)
