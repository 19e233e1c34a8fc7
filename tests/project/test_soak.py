"""A soak that goes on where it was. Needs no Spark."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import soak

TESTS = """import os, pathlib, pytest
is_mended = pathlib.Path(__file__).with_name("mended").exists()
@pytest.mark.parametrize("n", range(3))
def test_it(n):
    assert n != 1 or is_mended
@pytest.fixture
def left():
    yield
    assert is_mended
def test_with_fixture(left): pass
@pytest.mark.skip
def test_skipped(): pass
def test_that_kills_its_worker():
    if "PYTEST_XDIST_WORKER" in os.environ and not is_mended: os._exit(1)
    assert is_mended
def test_after_it(): pass
"""
PLUGIN = """import itertools, pathlib
from tests.kit import soak
records = itertools.chain({records!r}, itertools.repeat({records!r}[-1]))
soak.record_of = lambda folder: folder / next(records)
def pytest_configure(config):
    soak.use(config, pathlib.Path({folder!r}))
"""
PASSED = {f"test_file.py::{name}" for name in ("test_it[0]", "test_it[2]", "test_after_it")}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(folder)]
    command += ["-p", "no:cacheprovider", str(folder), *arguments]
    own = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(command, env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_has_passed_is_left_out(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_file.py").write_text(TESTS)
    records = tmp_path / "records"
    plugin = PLUGIN.format(records=["code"], folder=str(records))
    (tmp_path / "conftest.py").write_text(plugin)
    first = run(tmp_path, "-n", workers).stdout
    assert "2 failed, 4 passed, 1 skipped, 1 error" in first
    assert soak.passed(records / "code") == PASSED
    assert f"3 have passed on this code: {records / 'code'}" in first
    (tmp_path / "mended").touch()
    second = run(tmp_path, "-n", workers).stdout
    assert "3 passed, 1 skipped" in second
    assert f"6 have passed on this code: {records / 'code'}" in second
    assert "1 skipped" in run(tmp_path, "-n", workers).stdout
    assert len((records / "code").read_text().splitlines()) == 6
    all_passed = run(tmp_path, "-n", workers, "-k", "not skipped")
    assert (all_passed.returncode, "6 have passed" in all_passed.stdout) == (0, True)
    assert run(tmp_path, "-n", workers, "-k", "mistyped").returncode == 5


def test_what_passes_after_the_code_has_changed_is_not_noted(tmp_path: Path) -> None:
    (tmp_path / "test_file.py").write_text("def test_one(): pass\ndef test_two(): pass")
    plugin = PLUGIN.format(records=["code", "code", "other"], folder=str(tmp_path))
    (tmp_path / "conftest.py").write_text(plugin)
    assert "2 passed" in run(tmp_path).stdout
    assert soak.passed(tmp_path / "code") == {"test_file.py::test_one"}
    assert not (tmp_path / "other").exists()


def test_the_record_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other code has another record, and code that is not committed has none.

    Code counts as other if something else is installed.
    """

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
    second = record()
    monkeypatch.setattr(importlib.metadata.PathDistribution, "read_text", lambda *_: "another jar")
    assert record() not in (None, first, second)
