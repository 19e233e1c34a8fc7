"""What changed since a version: VERSION BETWEEN against table_changes.

    python -m benchmarks.ranges [--repetitions 9]

A table gets one file in each of its versions, and both queries read the newest of them: first as
they were appended, then after a COMPACT MAJOR, where a range reads the one file in which the rows
lie now, and the change data feed the files as they were. Each query sums a column, turn about;
`ratio` is the median of those of one round, and below 1 where VERSION BETWEEN is quicker.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rebase import SETTINGS, print_table
from tests.kit.sessions import classic_session
from tests.kit.support import Table, latest_version

PROPERTIES = {"interlock.policy": "maxcompute_delta", "delta.enableChangeDataFeed": "true"}
VERSIONS, ROWS = 60, 50_000
RANGES = (1, 10, 60)
BETWEEN = "SELECT sum(v), count(*) FROM {t} VERSION BETWEEN {a} AND {b}"
CHANGES = "SELECT sum(v), count(*) FROM table_changes('{t}', {a} + 1, {b})"


def make_table(spark: SparkSession, path: Path) -> Table:
    """Make a table with `ROWS` rows in each of its versions from 1 on."""
    table = Table(path)
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING delta TBLPROPERTIES ({listed})")
    for version in range(1, VERSIONS + 1):
        first = version * ROWS
        rows = f"SELECT id, id % 1000 AS v FROM range({first}, {first + ROWS}, 1, 1)"
        spark.sql(f"INSERT INTO {table} {rows}")
    return table


def compare(spark: SparkSession, table: Table, count: int, repetitions: int) -> list[str]:
    """Measure both queries on the newest versions that brought rows."""
    ends = {"t": table, "a": VERSIONS - count, "b": latest_version(table)}
    queries = (BETWEEN.format(**ends), CHANGES.format(**ends))
    seconds: list[list[float]] = [[], []]
    results = set()
    for turn in range(repetitions + 2):  # the first two warm up
        for which in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            results |= {tuple(row) for row in spark.sql(queries[which]).collect()}
            seconds[which].append(time.perf_counter() - start)
    assert len(results) == 1, f"different answers: {results}"
    medians = [statistics.median(times[2:]) for times in seconds]
    ratio = statistics.median(a / b for a, b in zip(seconds[0][2:], seconds[1][2:], strict=True))
    return [f"{count} x {ROWS:,} rows", *(f"{m * 1000:.0f} ms" for m in medians), f"{ratio:.2f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="VERSION BETWEEN against table_changes.")
    parser.add_argument("--repetitions", type=int, default=9, help="of every measurement")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        classic_session(**SETTINGS) as spark,
    ):
        table = make_table(spark, Path(folder, "t"))
        for heading in ("appends", "after COMPACT MAJOR"):
            lines = [[heading, "VERSION BETWEEN", "table_changes", "ratio"]]
            lines += [compare(spark, table, count, arguments.repetitions) for count in RANGES]
            print_table(lines)
            spark.sql(f"ALTER TABLE {table} COMPACT MAJOR")


if __name__ == "__main__":
    main()
