"""A MERGE of a minute against one commit per second on its rows, with its users' retry.

    python -m benchmarks.long_merge [--seconds 60] [--runs 5]

One side after the other, each in a process of its own: stock Delta, where the MERGE is run again
until it succeeds or has been run `--runs` times, and `row_level` with
`spark.interlock.rerun.maxRuns`. Fails if under `row_level` the MERGE was run more than twice.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import interlock
from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

from benchmarks.rebase import print_table
from tests.kit.sessions import stock
from tests.kit.support import log_of
from tests.kit.tree import ROOT

SIDES = ("stock", "row_level")
ROWS = 60
RERUN = "io.interlock.spark.statements.Rerun"


def session(side: str, runs: int) -> SparkSession:
    """Start the session of one side; the MERGE sleeps in one task, the other job has the others."""
    settings: dict[str, bool | float | int | str | None] = {**SMALL_SESSION}
    settings["spark.interlock.rerun.maxRuns"] = runs
    builder = SparkSession.builder.config(map=settings).master("local[4]")
    builder = stock(builder) if side == "stock" else interlock.configure(builder)
    return builder.getOrCreate()


def make(spark: SparkSession, side: str, table: str) -> None:
    """Make a table of 60 rows in one file."""
    properties = "'delta.enableDeletionVectors' = 'true'"
    if side != "stock":
        properties += f", 'interlock.policy' = '{side}'"
    spark.sql(f"CREATE TABLE {table} (id INT, n INT) USING delta TBLPROPERTIES ({properties})")
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 0 FROM range({ROWS})"
    )


def measured(side: str, folder: Path, seconds: int, runs: int) -> dict[str, float | None]:
    """Run one side."""
    spark = session(side, runs)
    table = f"delta.`{folder}`"
    make(spark, side, table)

    def slowly(n: int) -> int:
        time.sleep(seconds / ROWS)
        return n + 1000

    spark.udf.register("slowly", slowly, "int")
    merge = (
        f"MERGE INTO {table} t USING (SELECT CAST(id AS INT) AS id FROM range({ROWS})) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = slowly(t.n)"
    )
    writer = Writer(spark.newSession(), table)
    writer.update(0)
    writer.start()
    start, number, done = time.monotonic(), 0, False
    with log_of(spark, RERUN) as reruns:
        while not done and number < (runs if side == "stock" else 1):
            number += 1
            done = succeeds(lambda: spark.sql(merge))
        number += str(reruns).count("runs again")
    took = time.monotonic() - start
    writer.stop()
    expected = writer.commits + (1000 * ROWS if done else 0)
    found = spark.sql(f"SELECT sum(n) FROM {table}").collect()[0][0]
    assert found == expected, f"{found} is not {expected}"
    return {
        "runs of the MERGE": number,
        "it succeeded": int(done),
        "seconds until then": took,
        "commits beside it": writer.commits,
        "longest commit beside it, s": writer.longest,
    }


def succeeds(run: Callable[[], object]) -> bool:
    """Run a statement; return False for a conflict."""
    try:
        run()
    except Exception as error:
        if not re.search("Concurrent|CONCURRENT", f"{type(error).__name__} {error}"):
            raise
        return False
    return True


class Writer:
    """Updates one row a second, and again at once if that loses."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self.commits = 0
        self.longest = 0.0
        self._spark, self._table = spark, table
        self._stopped = Event()
        self._thread = Thread(target=self._run)

    def start(self) -> None:
        """Start it on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Let it end its last commit."""
        self._stopped.set()
        self._thread.join()

    def update(self, key: int) -> None:
        """Add 1 to a row."""
        start = time.monotonic()
        update = f"UPDATE {self._table} SET n = n + 1 WHERE id = {key}"
        while not succeeds(lambda: self._spark.sql(update)):
            pass
        self.commits += 1
        self.longest = max(self.longest, time.monotonic() - start)

    def _run(self) -> None:
        while not self._stopped.wait(1):
            self.update(self.commits % ROWS)


def in_process(side: str, folder: Path, seconds: int, runs: int) -> dict[str, float]:
    """Run one side in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.long_merge", "--side", side, "--folder"]
    done = subprocess.run(
        [*command, str(folder), "--seconds", str(seconds), "--runs", str(runs)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    measures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measures


def main() -> None:
    """Run both sides, print them and check what must be."""
    parser = argparse.ArgumentParser(description="A long MERGE beside a commit per second.")
    parser.add_argument("--seconds", type=int, default=60, help="how long the MERGE takes alone")
    parser.add_argument("--runs", type=int, default=5, help="the most runs of the MERGE")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side, given.folder, given.seconds, given.runs)))
        return
    with tempfile.TemporaryDirectory() as folder:
        stock_, ours = (
            in_process(side, Path(folder, side), given.seconds, given.runs) for side in SIDES
        )
    print_table([["", *SIDES], *([k, f"{stock_[k]:.0f}", f"{ours[k]:.0f}"] for k in ours)])
    assert ours["it succeeded"]
    assert ours["runs of the MERGE"] <= 2


if __name__ == "__main__":
    main()
