"""One sbt that stays open: starting it and loading the build takes longer than most suites."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_COLOUR = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")
_END = re.compile(r"\[(success|error)\] Total time: ")
_FAILED = re.compile(r"==> X (?:[\w.]+\.)?(\w+Suite)\.(.+?) +[\d.]+m?s\b")
_SECONDS_TO_START = 300.0


class HungError(Exception):
    """Something did not end within its time limit."""


class BuildError(Exception):
    """A build that failed, or an sbt that ended; the message has its last words."""


@dataclass(frozen=True)
class Said:
    """What sbt said to a command."""

    ok: bool
    lines: list[str]

    def failed_test(self, name: str | None = None) -> str | None:
        """Return the first test that failed, of this name if one is given, as `Suite: name`."""
        for line in self.lines:
            if (found := _FAILED.search(line)) and name in (None, found[2]):
                return f"{found[1]}: {found[2]}"
        return None

    @property
    def errors(self) -> str:
        """The first lines that say what is wrong."""
        told = [line for line in self.lines if "[error]" in line]
        return "\n".join((told or self.lines[-5:])[:5])


class Sbt:
    """An sbt in a folder, started when it is first asked, and again after one that hung.

    Warnings are no errors there: a mutation may leave something unused.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command, self._folder = command, folder
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def run(self, command: str, limit: float) -> Said:
        """Run a command of tasks.

        Raises:
            HungError: after `limit` seconds
            BuildError: where sbt ends

        """
        if self._process is None:
            self._start()
            limit += _SECONDS_TO_START
        self._send(command)
        return self._answer(time.monotonic() + limit)

    def close(self) -> None:
        """End it, with the tests that it has forked."""
        if self._process is not None:
            kill(self._process)
            self._process = None

    def _start(self) -> None:
        self._lines = queue.Queue()
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        self._send('set ThisBuild / scalacOptions -= "-Werror"')

    def _send(self, command: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and has said why
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(_COLOUR.sub("", line).rstrip())
        lines.put(None)

    def _answer(self, deadline: float) -> Said:
        said: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.close()
                raise HungError from None
            if line is None:
                self.close()
                raise BuildError("\n".join(["sbt has ended:", *said[-5:]]))
            said.append(line)
            if found := _END.search(line):
                return Said(found[1] == "success", said)


def kill(process: subprocess.Popen[str]) -> None:
    """End a process that leads a group, with all of the group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
