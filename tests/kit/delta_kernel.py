"""Delta Kernel, the Java library, in a process of its own that reads and appends.

with start(log) as kernel:
    kernel.rows(table, version=2)
    kernel.begin(table)
    assert kernel.append(9, "x") == 3  # the version, or a `Refused`
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock._artifacts import DELTA_VERSION
from interlock.lab.model import Rows, in_order

from tests.kit.java import JARS, fetched, java
from tests.kit.support import Table

_SOURCE = Path(__file__).with_name("DeltaKernel.java")


@dataclass(frozen=True)
class Refused:
    """What Kernel has thrown: the simple name of the class, and the message."""

    error: str
    message: str


class DeltaKernel:
    """The test's side of the connection; a row is (id INT, v STRING)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def rows(self, table: Table, *, version: int) -> Rows:
        """Read all rows of a version, in order."""
        found = self._ask("read", str(table.path), version)
        assert isinstance(found, list), found
        return in_order(tuple(tuple(row) for row in found))

    def begin(self, table: Table) -> int | Refused:
        """Begin a transaction that appends; return the version that it has read."""
        begun: int | Refused = self._ask("begin", str(table.path))
        return begun

    def append(self, number: int, text: str) -> int | Refused:
        """Commit a row in the transaction; return the version that it made."""
        made: int | Refused = self._ask("append", number, text)
        return made

    def compact_log(self, table: Table, first: int, last: int) -> None:
        """Write a log compaction file, which holds what several commits have come to."""
        answer = self._ask("compact log", str(table.path), first, last)
        assert answer == last, answer

    def _ask(self, *order: object) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        done, *message = json.loads(stdout.readline())
        return Refused(done, *message) if message else done


@contextmanager
def start(log: Path) -> Iterator[DeltaKernel]:
    """Start it on Spark's jars, with its log in a file, and end it."""
    modules = ("delta-kernel-api", "delta-kernel-defaults", "delta-storage")
    jars = fetched(f"io.delta:{module}:{DELTA_VERSION}" for module in modules)
    classpath = os.pathsep.join((*map(str, jars), f"{JARS}/*"))
    command = java("-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath, str(_SOURCE))
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        yield DeltaKernel(process)
