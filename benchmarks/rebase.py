"""What it costs to rebase a commit over compactions, and what a compaction costs.

    python -m benchmarks.rebase [--repetitions 5]

Three tables are printed:

    dead rows   a DELETE stands at its commit while COMPACT MAJOR makes one file of ten
    winners     a DELETE stands at its commit after compactions of other partitions each, and a
                COMPACT MINOR after APPENDs
    compaction  COMPACT MAJOR of 200 files against OPTIMIZE of a table without a policy

`rebase` is the commit's time less that of the same commit without a winner, medians. While a
rebased commit runs, the table's data files are away: it could not read a byte of them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

from integration.commit_clock import CommitClock
from tests.kit.sessions import classic_session
from tests.kit.support import Table, await_checkpoints, commit_file, latest_version, tags

POLICY = {"interlock.policy": "maxcompute_delta", "delta.enableDeletionVectors": "true"}
REQUIRED = {
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableDeletionVectors": "true",
}
SETTINGS: dict[str, str] = {
    **SMALL_SESSION,
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
DEAD_ROWS = (10**3, 10**5, 10**6)
ROWS = 2 * 10**6
WINNERS = (1, 10, 100)
DELETE = "DELETE FROM {t} WHERE id % 200 < 100"
MINOR = "ALTER TABLE {t} COMPACT MINOR"
COMPACTION = "ALTER TABLE {t} PARTITION (p = {p}) COMPACT MINOR"
FILES, ROWS_PER_FILE = 200, 20_000


@dataclass(frozen=True)
class Measured:
    """One commit.

    Attributes:
        seconds: its time
        jobs: the Spark jobs that ran in it
        written: bytes of the deletion vectors that it wrote
        others: how many other files it wrote, the log's aside
        rules: the cells by which it passed its winners

    """

    seconds: float
    jobs: int
    written: int
    others: int
    rules: str


class Bench:
    """Tables that are made once and copied, and commits on the copies."""

    def __init__(self, spark: SparkSession, folder: Path, repetitions: int) -> None:
        self.spark = spark
        self.repetitions = repetitions
        self._folder = folder
        self._copies = 0

    def make(self, name: str, properties: dict[str, str], by: str, rows: str) -> Table:
        """Create a table of `rows`, a query."""
        table = Table(self._folder / name)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.spark.sql(f"CREATE TABLE {table} USING delta {by} TBLPROPERTIES ({listed}) AS {rows}")
        return table

    def copy(self, of: Table) -> Table:
        self._copies += 1
        shutil.copytree(of.path, self._folder / str(self._copies))
        return Table(self._folder / str(self._copies))

    def commit(
        self, of: Table, statement: str, winners: Callable[[Table], None] | None
    ) -> list[Measured]:
        """Measure a statement that commits after `winners`, as often as wanted."""
        found = []
        for _ in range(self.repetitions):
            table = self.copy(of)
            found.append(self._once(table, statement.format(t=table), winners))
            shutil.rmtree(table.path)
        return found

    def _once(
        self, table: Table, statement: str, winners: Callable[[Table], None] | None
    ) -> Measured:
        clock = CommitClock(self.spark)
        thread = clock.hold(statement)
        if winners is not None:
            winners(table)
        before = set(_files(table))
        with _data_away(table, away=winners is not None):
            clock.open(thread)
        new = set(_files(table)) - before
        vectors = {file for file in new if file.name.startswith("deletion_vector_")}
        return Measured(
            clock.seconds,
            clock.jobs,
            sum(file.stat().st_size for file in vectors),
            len(new - vectors),
            tags(table, latest_version(table)).get("interlock.rules", "-"),
        )


def _files(table: Table) -> Iterator[Path]:
    """List a table's files without its log and without Hadoop's hidden checksums."""
    log = table.path / "_delta_log"
    found = (f for f in table.path.rglob("[!.]*") if f.is_file())
    return (f for f in found if log not in f.parents)


@contextmanager
def _data_away(table: Table, *, away: bool) -> Iterator[None]:
    """Take the data files out of the table's folders for a while."""
    moved = [file for file in _files(table) if file.suffix == ".parquet" and away]
    for file in moved:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in moved:
            file.with_suffix(".away").rename(file)


def dead_rows(bench: Bench) -> list[list[str]]:
    """Rebase a DELETE of many rows over COMPACT MAJOR."""
    table = bench.make(
        "rows", POLICY, "", f"SELECT id, id % 1000 AS v FROM range(0, {ROWS}, 1, 10)"
    )

    def compact(raced: Table) -> None:
        bench.spark.sql(f"ALTER TABLE {raced} COMPACT MAJOR")

    lines = [_heads("dead rows")]
    for dead in DEAD_ROWS:
        statement = f"DELETE FROM {{t}} WHERE id % {ROWS // dead} = 1"
        alone = bench.commit(table, statement, None)
        lines.append(_line(f"{dead:,}", alone, bench.commit(table, statement, compact)))
    return lines


def winners(bench: Bench) -> list[list[str]]:
    """Rebase over many winners, which are made once and laid before each attempt."""
    table = partitions(bench)
    lines = [_heads("winners")]
    for name, winner, statement in (
        ("COMPACT MINOR, then DELETE", COMPACTION, DELETE),
        ("INSERT, then COMPACT MINOR", "INSERT INTO {t} VALUES ({p}, {p})", MINOR),
    ):
        source = with_winners(bench, table, winner, max(WINNERS))
        alone = bench.commit(table, statement, None)
        for count in WINNERS:
            rebased = past_winners(bench, table, statement, source, count)
            lines.append(_line(f"{count} x {name}", alone, rebased))
    return lines


def partitions(bench: Bench) -> Table:
    """Create a table of as many partitions as there are winners at most, of two files each."""
    count = max(WINNERS)
    rows = f"SELECT id, id % {count} AS p FROM range(0, {count * 200}, 1, 2)"
    return bench.make("partitions", POLICY, "PARTITIONED BY (p)", rows)


def with_winners(bench: Bench, of: Table, winner: str, count: int) -> Table:
    """Copy a table and run a statement there once for each of so many partitions."""
    copy = bench.copy(of)
    for p in range(count):
        bench.spark.sql(winner.format(t=copy, p=p))
    await_checkpoints(bench.spark)
    return copy


def past_winners(
    bench: Bench, of: Table, statement: str, source: Table, count: int
) -> list[Measured]:
    """Measure a statement that commits after the first winners of `source`."""
    first = latest_version(of) + 1
    versions = range(first, first + count)
    return bench.commit(of, statement, lambda raced: _lay_before(raced, source, versions))


def _lay_before(table: Table, source: Table, versions: range) -> None:
    """Give a table versions that were made on a copy of it, as another process would.

    Their checksums are there too and, where they are all versions of the copy, its checkpoints: a
    commit waits for one that is late.
    """
    known = {file.relative_to(table.path) for file in _files(table)}
    for file in _files(source):
        name = file.relative_to(source.path)
        if name not in known:
            shutil.copy2(file, table.path / name)
    commits = [commit_file(source, version) for version in versions]
    files = [*commits, *(file.with_suffix(".crc") for file in commits)]
    if versions[-1] == latest_version(source):
        files += (source.path / "_delta_log").glob("[!.]*checkpoint*")
    for file in files:
        shutil.copy2(file, table.path / "_delta_log")


def compaction(bench: Bench) -> list[list[str]]:
    """Compare COMPACT MAJOR with stock OPTIMIZE, turn about."""
    rows = f"SELECT id, id % 1000 AS v FROM range(0, {FILES * ROWS_PER_FILE}, 1, {FILES})"
    ours, stock = bench.make("ours", POLICY, "", rows), bench.make("stock", REQUIRED, "", rows)
    statements = ((ours, "ALTER TABLE {t} COMPACT MAJOR"), (stock, "OPTIMIZE {t}"))
    seconds: list[list[float]] = [[], []]
    for turn in range(bench.repetitions + 1):
        for which in (0, 1) if turn % 2 else (1, 0):
            of, statement = statements[which]
            table = bench.copy(of)
            start = time.perf_counter()
            bench.spark.sql(statement.format(t=table)).collect()
            seconds[which].append(time.perf_counter() - start)
            shutil.rmtree(table.path)
    medians = [statistics.median(times[1:]) for times in seconds]  # the first warms up
    ratio = statistics.median(a / b for a, b in zip(seconds[0][1:], seconds[1][1:], strict=True))
    return [
        ["compaction", "COMPACT MAJOR", "stock OPTIMIZE", "ratio"],
        [
            f"{FILES} files x {ROWS_PER_FILE:,} rows",
            *(f"{median:.2f} s" for median in medians),
            f"{ratio:.2f}",
        ],
    ]


def _heads(first: str) -> list[str]:
    return [
        first,
        *("commit alone", "rebased", "rebase"),
        *("data read", "Spark jobs", "data written", "vectors written", "rules"),
    ]


def median_seconds(found: Sequence[Measured]) -> float:
    return statistics.median(measured.seconds for measured in found)


def _line(name: str, alone: Sequence[Measured], rebased: Sequence[Measured]) -> list[str]:
    before, after = median_seconds(alone), median_seconds(rebased)
    rules = rebased[0].rules.split(",")
    return [
        name,
        *(f"{seconds * 1000:.0f} ms" for seconds in (before, after, after - before)),
        "0 bytes",  # they were away
        str(max(m.jobs for m in rebased)),
        f"{max(m.others for m in rebased)} files",
        f"{max(m.written for m in rebased):,} bytes",
        rules[0] if len(set(rules)) == 1 else f"{len(rules)} rules",
    ]


def print_table(lines: list[list[str]]) -> None:
    """Print lines with aligned columns, the heads first."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *rest]), flush=True)
    print(flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What rebases and compactions cost.")
    parser.add_argument("--repetitions", type=int, default=5, help="of every measurement")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        classic_session(**SETTINGS) as spark,
    ):
        bench = Bench(spark, Path(folder), arguments.repetitions)
        for measure in (dead_rows, winners, compaction):
            print_table(measure(bench))


if __name__ == "__main__":
    main()
