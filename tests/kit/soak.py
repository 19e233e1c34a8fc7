"""`make soak` takes hours. One that was ended goes on where it was, if the code is the same.

`pytest --soak-record FOLDER` leaves out the tests that have passed on this code, and notes each
that passes in a file of the folder, one line with its seconds and its id. The code is what Git has
in CODE; with changes that are not committed, all run and none is noted.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import defaultdict
from pathlib import Path

import pyspark
import pytest

from tests.kit.tree import ROOT

CODE = ("jvm", "python", "tests", "integration", "build.sbt", "constraints.txt")


def record_of(folder: Path, root: Path = ROOT) -> Path | None:
    """Return the file for the code as it is; None if it has changes that are not committed."""
    if _git(root, "status", "--porcelain", "--", *CODE):
        return None
    trees = _git(root, "ls-tree", "HEAD", "--", *CODE)
    code = hashlib.sha256(f"{pyspark.__version__}\n{trees}".encode()).hexdigest()
    return folder / f"{code[:16]}.txt"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def passed(record: Path) -> list[str]:
    """Return the ids of the tests that are noted."""
    if not record.exists():
        return []
    return [line.split("\t", 1)[1] for line in record.read_text(encoding="utf-8").splitlines()]


class Soak:
    """The plugin of pytest, which only the process that hears of all tests lets note them."""

    def __init__(self, record: Path, *, notes: bool) -> None:
        self._record, self._notes = record, notes
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what has passed."""
        done = set(passed(self._record))
        left_out = [item for item in items if item.nodeid in done]
        items[:] = [item for item in items if item.nodeid not in done]
        config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test once it has passed with all that its fixtures clear away."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)
        if self._notes and report.when == "teardown" and report.nodeid not in self._failed:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            with self._record.open("a", encoding="utf-8") as file:
                file.write(f"{self._seconds[report.nodeid]:.0f}\t{report.nodeid}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many have passed on this code, in this run and those before."""
        count = len(passed(self._record))
        terminalreporter.write_line(f"{count} have passed on this code: {self._record}")


def use(config: pytest.Config, folder: Path) -> None:
    """Let this run leave out what has passed, and note what does."""
    record = record_of(folder)
    if record is not None:
        is_worker = hasattr(config, "workerinput")
        config.pluginmanager.register(Soak(record, notes=not is_worker))
