"""What it costs to give a plain Delta table its first policy, and to take the policy away again.

    python -m benchmarks.migration [--repetitions 3]

Tables of 1, 100 and 1,000 files without properties get `interlock.policy` by ALTER TABLE and lose
it by `CALL interlock.remove_policy`. Printed are medians of the time, the commits, and the bytes
that were added to the log (commits, checksums, checkpoints) and beside it (data, deletion vectors).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rebase import SETTINGS, Bench, print_table
from tests.kit.sessions import classic_session
from tests.kit.support import Table, latest_version

POLICY = "row_level"
FILES = (1, 100, 1000)
ROWS_PER_FILE = 1000
PLAIN = {"delta.checkpointInterval": "10"}  # Delta's default
STATEMENTS = {
    "policy given": f"ALTER TABLE {{t}} SET TBLPROPERTIES ('interlock.policy' = '{POLICY}')",
    "policy removed": "CALL interlock.remove_policy('{t.path}')",
}


@dataclass(frozen=True)
class Cost:
    """What one statement cost.

    Attributes:
        seconds: its time
        commits: the versions that it made
        log: bytes that it added to the log's folder
        data: bytes that it added beside it

    """

    seconds: float
    commits: int
    log: int
    data: int


def measured(spark: SparkSession, table: Table, statement: str) -> Cost:
    """Run a statement on a table and return what it cost."""
    version, (log, data) = latest_version(table), sizes(table)
    start = time.perf_counter()
    spark.sql(statement.format(t=table)).collect()
    seconds = time.perf_counter() - start
    log_after, data_after = sizes(table)
    return Cost(seconds, latest_version(table) - version, log_after - log, data_after - data)


def sizes(table: Table) -> tuple[int, int]:
    """Return the bytes in the log's folder, and those of all other files."""
    log = table.path / "_delta_log"
    files = [file for file in table.path.rglob("[!.]*") if file.is_file()]
    in_log = sum(file.stat().st_size for file in files if log in file.parents)
    return in_log, sum(file.stat().st_size for file in files) - in_log


def compare(bench: Bench, files: int) -> list[list[str]]:
    """Give a policy to copies of a table, and remove it from them."""
    rows = f"SELECT id, id % 1000 AS v FROM range(0, {files * ROWS_PER_FILE}, 1, {files})"
    plain = bench.make(f"plain-{files}", PLAIN, "", rows)
    costs: dict[str, list[Cost]] = {name: [] for name in STATEMENTS}
    for _ in range(bench.repetitions + 1):
        table = bench.copy(plain)
        for name, statement in STATEMENTS.items():
            costs[name].append(measured(bench.spark, table, statement))
    return [_line(files, name, found[1:]) for name, found in costs.items()]  # the first warms up


def _line(files: int, name: str, costs: list[Cost]) -> list[str]:
    return [
        f"{name}, {files:,} file{'s' if files > 1 else ''}",
        f"{statistics.median(cost.seconds for cost in costs):.1f} s",
        str(max(cost.commits for cost in costs)),
        f"{statistics.median(cost.log for cost in costs) / 1000:,.0f} kB",
        f"{max(cost.data for cost in costs)} bytes",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the first policy of a table costs.")
    parser.add_argument("--repetitions", type=int, default=3, help="of every measurement")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, classic_session(**SETTINGS) as spark:
        bench = Bench(spark, Path(folder), arguments.repetitions)
        lines = [["", "time", "commits", "log", "data"]]
        for files in FILES:
            lines += compare(bench, files)
        print_table(lines)


if __name__ == "__main__":
    main()
