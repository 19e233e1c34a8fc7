"""What an atomic block costs: its statements in a block, against the same ones alone.

    python -m benchmarks.blocks [--repetitions 15] [--postgres]

Each round runs the same UPDATEs and INSERTs, turn about: in a block, and one by one. `ratio` is the
median of those of one round. On the default coordinator, or on Postgres.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.rebase import SETTINGS, print_table
from tests.kit.sessions import classic_session
from tests.kit.support import Table
from tests.postgres.database import NAME, database
from tests.postgres.postgres import VERSIONS

TABLES, ROWS = 5, 100_000
WARM_UP = 8


def make_table(spark: SparkSession, path: Path, more: dict[str, str]) -> Table:
    table = Table(path)
    keys = {"interlock.policy": "row_level", "interlock.exclusive": "true", **more}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in keys.items())
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING delta TBLPROPERTIES ({listed})")
    spark.sql(f"INSERT INTO {table} SELECT id, id FROM range(0, {ROWS}, 1, 1)")
    return table


def compare(spark: SparkSession, heading: str, statements: list[str], rounds: int) -> list[str]:
    """Measure statements in a block and alone."""
    seconds: list[list[float]] = [[], []]
    for turn in range(rounds + WARM_UP):
        for which in (0, 1) if turn % 2 else (1, 0):
            run = [statement.format(n=2 * turn + which) for statement in statements]
            block = [f"BEGIN ATOMIC {'; '.join(run)}; END"]
            start = time.perf_counter()
            for statement in run if which else block:
                spark.sql(statement)
            seconds[which].append(time.perf_counter() - start)
    blocks, alone = (times[WARM_UP:] for times in seconds)
    ratio = statistics.median(a / b for a, b in zip(blocks, alone, strict=True))
    medians = map(statistics.median, (blocks, alone))
    return [heading, *(f"{m * 1000:.0f} ms" for m in medians), f"{ratio:.2f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="An atomic block against its statements alone.")
    parser.add_argument("--repetitions", type=int, default=15, help="of every measurement")
    parser.add_argument("--postgres", action="store_true", help="on Postgres")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings, more = dict(SETTINGS), {}
        if arguments.postgres:
            server = stack.enter_context(database(max(VERSIONS), folder / "postgres"))
            settings |= server.settings("blocks", proxied=False)
            more = {"interlock.coordinator": NAME}
        spark = stack.enter_context(classic_session(**settings))
        tables = [make_table(spark, folder / f"t{n}", more) for n in range(TABLES)]
        update = "UPDATE {t} SET v = v + 1 WHERE id = {{n}}"
        insert = "INSERT INTO {t} VALUES ({{n}} + 1000000, 0)"
        one = [update.format(t=tables[0])]
        two = [*one, insert.format(t=tables[0])]
        five = [update.format(t=table) for table in tables]
        lines = [["", "block", "alone", "ratio"]]
        for heading, statements in (
            ("one statement", one),
            ("UPDATE and INSERT of a table", two),
            ("UPDATEs of five tables", five),
        ):
            lines.append(compare(spark, heading, statements, arguments.repetitions))
        print_table(lines)


if __name__ == "__main__":
    main()
