"""`make soak` takes hours. One that was ended goes on where it was, if the code is the same.

`pytest --soak-record FOLDER` leaves out the tests that have passed on this code, and notes each
that passes in a file of the folder, one line with its seconds and its id. The code is what Git has
in CODE and what is installed, with the versions of Python, Spark and Java and the settings of both
and of the tests in the environment. With changes that are not committed, all run and none is noted.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyspark
import pytest
from interlock import _diagnosis

from tests.kit.tree import ROOT

CODE = (
    *("jvm", "python", "tests", "integration", "conftest.py", "pyproject.toml", "constraints.txt"),
    *("build.sbt", "project", "Makefile", "hatch_build.py"),
)
SETTINGS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
_LEFT_OUT = "interlock_left_out"


def record_of(folder: Path, root: Path = ROOT) -> Path | None:
    """Return the file for the code as it is; None if it has changes that are not committed."""
    if _git(root, "status", "--porcelain", "--", *CODE):
        return None
    trees = _git(root, "ls-tree", "HEAD", "--", *CODE)
    names = (name for name in os.environ if name.startswith("INTERLOCK_") or name in SETTINGS)
    settings = sorted((name, os.environ[name]) for name in names)
    # RECORD has a checksum of each file, so of the jar too.
    installed = importlib.metadata.distribution("spark-interlock").read_text("RECORD")
    versions = f"{sys.version}\n{pyspark.__version__}\n{_java()}"
    code = f"{versions}\n{settings}\n{installed}\n{trees}"
    return folder / f"{hashlib.sha256(code.encode()).hexdigest()[:16]}.txt"


_java = functools.cache(lambda: _diagnosis.java().found)


def _git(root: Path, *arguments: str) -> str:
    # Without the lock of the index, which somebody who commits meanwhile needs.
    command = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout


def passed(record: Path) -> set[str]:
    """Return the ids of the tests that are noted."""
    if not record.exists():
        return set()
    return {line.split("\t", 1)[1] for line in record.read_text(encoding="utf-8").splitlines()}


class LeaveOut:
    """The plugin that leaves tests out, in each process.

    Attributes:
        ids: the tests
        count: how many of those that were asked for it has left out

    """

    def __init__(self, ids: Collection[str]) -> None:
        self.ids = frozenset(ids)
        self.count = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave them out."""
        left_out = [item for item in items if item.nodeid in self.ids]
        items[:] = [item for item in items if item.nodeid not in self.ids]
        config.hook.pytest_deselected(items=left_out)
        self.count = len(left_out)
        if hasattr(config, "workeroutput"):
            config.workeroutput[_LEFT_OUT] = self.count


class Notes:
    """The plugin that notes what has passed, in the process that hears of all tests.

    Args:
        record: the file
        leave_out: what all workers leave out, also one that is started after others have passed
        is_same: whether the code is still that of the record

    """

    def __init__(self, record: Path, leave_out: LeaveOut, is_same: Callable[[], bool]) -> None:
        self._record, self._leave_out, self._is_same = record, leave_out, is_same
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what it leaves out."""
        node.workerinput[_LEFT_OUT] = sorted(self._leave_out.ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear of a worker what it has left out."""
        self._leave_out.count += getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test once it has passed with all that its fixtures clear away."""
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)
        is_over = report.when == "teardown" and report.nodeid not in self._failed
        if is_over and self._is_same():
            self._record.parent.mkdir(parents=True, exist_ok=True)
            with self._record.open("a", encoding="utf-8") as file:
                file.write(f"{self._seconds[report.nodeid]:.0f}\t{report.nodeid}\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let a soak of which all has passed succeed."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._leave_out.count:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many have passed on this code, in this run and those before."""
        count = len(passed(self._record))
        terminalreporter.write_line(f"{count} have passed on this code: {self._record}")


def use(config: pytest.Config, folder: Path) -> None:
    """Let this run leave out what has passed, and note what does."""
    worker: dict[str, list[str]] | None = getattr(config, "workerinput", None)
    if worker is not None:
        config.pluginmanager.register(LeaveOut(worker.get(_LEFT_OUT, ())))
    elif (record := record_of(folder)) is not None:
        leave_out = LeaveOut(passed(record))
        config.pluginmanager.register(leave_out)
        config.pluginmanager.register(Notes(record, leave_out, lambda: record_of(folder) == record))
