"""Two statements of one process, of which the second is judged against the first, on its way.

The first is held before the store is asked, the second where it looks for rows in the first's file:
the checksums of that file are a pipe that nobody has written yet. A test runs `start` and `finish`
in a driver process, and other processes' commits between them.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from integration.compiled import compiled
from tests.kit.eventually import eventually
from tests.kit.support import threads_in

PATIENCE_SECONDS = 100


class Going(NamedTuple):
    """What `start` has started."""

    first: Future[Any]
    second: Future[Any]
    pipe: Path
    marker: Path


_going: list[Going] = []


def start(spark: SparkSession, table: Path, first: str, second: str) -> None:
    """Start both, and come back when each is held."""
    jvm: Any = spark._jvm
    faults = compiled(spark, "Faults")
    jvm.io.interlock.coordinator.CommitPhases.observe(faults.phases())
    gate = jvm.io.interlock.spark.PhaseGate()
    threads = ThreadPoolExecutor()

    def behind_gate() -> object:
        gate.install()
        try:
            return spark.sql(second)
        finally:
            gate.uninstall()

    held = threads.submit(behind_gate)
    eventually(lambda: gate.awaitArrival(100), PATIENCE_SECONDS)
    known = set(table.glob("*.parquet"))
    marker = table.with_name("marker")
    faults.arm("ratifying", "hold", str(table), str(marker))
    on_its_way = threads.submit(spark.sql, first)
    eventually(marker.exists, PATIENCE_SECONDS)
    (written,) = (file for file in table.glob("*.parquet") if file not in known)
    pipe = written.with_name(f".{written.name}.crc")
    pipe.unlink()
    os.mkfifo(pipe)
    gate.open()
    eventually(lambda: threads_in(spark, "RowsOfFiles"), PATIENCE_SECONDS)
    _going.append(Going(on_its_way, held, pipe, marker))


def finish(spark: SparkSession) -> None:
    """Let the first be sent, then the second go on, to their ends; raise what the second raised."""
    going = _going.pop()
    going.marker.with_name(f"{going.marker.name}.go").touch()
    # The first, once more.
    eventually(lambda: threads_in(spark, "takeTurn"), PATIENCE_SECONDS)
    while not (going.first.done() and going.second.done()):
        try:
            os.close(os.open(going.pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody reads it
            time.sleep(0.05)
    going.pipe.unlink()
    going.first.result()
    going.second.result()
