"""Runs of pytest in the copy of the tree, each a process of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools.mutants.sbt import BuildError, HungError, kill

_PASSED, _FAILED = 0, 1
# With --setup-show: a test whose fixtures are there.
_BEGUN = re.compile(r"^ {8}\S+::", re.MULTILINE)


class Pytests:
    """Runs tests in `folder`, one run at a time."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python, self._folder = python, folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, tests: Sequence[str], limit: float, *, to_the_end: bool = False) -> list[str]:
        """Run tests up to the first that fails, or all of them; return those that failed.

        Raises:
            HungError: after `limit` seconds
            BuildError: where pytest finds no test, or a test could not begin, or not in time

        """
        report = self._folder / ".build" / "report.xml"
        report.parent.mkdir(exist_ok=True)
        report.unlink(missing_ok=True)
        command = [str(self._python), "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider"]
        options = ["--setup-show", f"--junitxml={report}", *([] if to_the_end else ["-x"])]
        log = self._folder / ".build" / "pytest.log"
        with log.open("w", encoding="utf-8") as out:
            self._process = subprocess.Popen(
                [*command, *options],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            try:
                code = self._process.wait(limit)
            except subprocess.TimeoutExpired:
                if not _BEGUN.search(log.read_text(encoding="utf-8", errors="replace")):
                    raise BuildError(f"{tests[0]} does not begin") from None
                raise HungError from None
            finally:
                self.close()
        failed = list(_failed(report)) if report.exists() else []
        if code not in (_PASSED, _FAILED) or bool(failed) != (code == _FAILED):
            told = log.read_text(encoding="utf-8", errors="replace").splitlines()
            why = [line for line in told if line.startswith(("E  ", "ERROR"))]
            raise BuildError("\n".join((why or told)[-5:]))
        return failed

    def close(self) -> None:
        """End the run that is under way, and what it has started."""
        if self._process is not None:
            kill(self._process)
            self._process = None


def _failed(report: Path) -> Iterator[str]:
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None:
            yield f"{case.get('classname', '').split('.')[-1]}: {case.get('name')}"
