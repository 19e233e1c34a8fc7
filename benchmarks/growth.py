"""What a small commit costs as a table, its log, the driver's tables and what it missed grow.

    python -m benchmarks.growth [--quick] [--table missed --table winners]

    files     in the table, which one commit has added
    versions  in the log, of which the newest has a checkpoint
    tables    in the driver, each with a commit of its own before
    missed    versions, which another process has made since the transaction began
    winners   compactions of other partitions, over which a DELETE is rebased

Each cell is the median of 30 commits of a file that is there already, in milliseconds, after 20
others, which under `missed` have missed 100 versions each. Under `winners` it is what the rebase
adds to a commit, the difference of medians of 5. `last/first` is the most against the least.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import rebase
from benchmarks.rebase import SETTINGS, print_table
from integration.writers import (
    Writer,
    acknowledged,
    answers,
    begin,
    commit_files,
    delta_log,
    end,
    make_files,
    run,
)
from tests.kit.driver_process import driver_processes
from tests.kit.sessions import classic_session
from tests.kit.support import Table, commit, commit_file, latest_version, make_table
from tests.kit.tiny_files import of_tiny_files

WARM_UP, MEASURED = 20, 30
REBASES = 5
FIRST_ID = 10
PATIENCE_SECONDS = 300
SIZES = {
    "files": (10, 1_000, 200_000),
    "versions": (10, 10_000, 100_000),
    "tables": (1, 1_000),
    "missed": (1, 10, 100),
    "winners": (1, 10, 100),
}
QUICK = {
    "files": (10, 1_000),
    "versions": (10, 1_000),
    "tables": (1, 20),
    "missed": (1, 10),
    "winners": (1, 10),
}


class Bench:
    """Commits to tables in one session."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._made = 0

    def files(self, count: int) -> float:
        """Measure commits to a table of so many files."""
        names = (f"{n // 1000}/{n}.parquet" for n in range(count))
        return self._measured(of_tiny_files(self._spark, self._new(), names))

    def versions(self, count: int) -> float:
        """Measure commits after so many versions."""
        table = self._table()
        self._commit(table, range(FIRST_ID, FIRST_ID + 1))
        delta_log(self._spark, str(table.path)).checkpoint()
        lengthen(table, count)
        return self._measured(table)

    def tables(self, count: int) -> float:
        """Measure commits to one of so many tables."""
        made = self._table()
        for _ in range(1, count):
            other = Table(shutil.copytree(made.path, self._new()))
            self._commit(other, range(FIRST_ID, FIRST_ID + 1))
        return self._measured(made)

    def missed(self, count: int) -> float:
        """Measure commits after so many versions of another process."""
        table = self._table("maxcompute_transactional")  # appends pass appends
        told = self._folder / "told"
        times = []
        first = 0
        with driver_processes(self._folder, "interlock", settings=SETTINGS) as others:
            for missed in [max(SIZES["missed"])] * WARM_UP + [count] * MEASURED:
                make_files(table, range(first, first + missed + 1))
                begin(self._spark, table.location)
                writer = Writer(table.location, first + 1, missed, "commit", str(told))
                told.unlink(missing_ok=True)
                run(others, [writer], PATIENCE_SECONDS)
                assert len(acknowledged(answers([writer]))) == missed
                times.append(end(self._spark, first))
                first += missed + 1
        return statistics.median(times[WARM_UP:])

    def winners(self, count: int) -> float:
        """Measure the rebase of a DELETE over so many compactions."""
        bench = rebase.Bench(self._spark, self._new(), REBASES)
        table = rebase.partitions(bench)
        source = rebase.with_winners(bench, table, rebase.COMPACTION, count)
        alone = bench.commit(table, rebase.DELETE, None)
        rebased = rebase.past_winners(bench, table, rebase.DELETE, source, count)
        return rebase.median_seconds(rebased) - rebase.median_seconds(alone)

    def _table(self, policy: str = "maxcompute_delta") -> Table:
        columns = "(id INT) USING delta"
        return make_table(self._spark, self._new(), policy=policy, columns=columns, statements=())

    def _new(self) -> Path:
        self._made += 1
        return self._folder / f"table-{self._made}"

    def _measured(self, table: Table) -> float:
        """Return the median of some commits, in seconds."""
        first = FIRST_ID + 1
        self._commit(table, range(first, first + WARM_UP))
        times = self._commit(table, range(first + WARM_UP, first + WARM_UP + MEASURED))
        return statistics.median(times)

    def _commit(self, table: Table, ids: range) -> list[float]:
        """Commit files of these ids one by one, and return the seconds of each."""
        make_files(table, ids)
        told = str(self._folder / "told")
        writer = Writer(table.location, ids.start, len(ids), "commit", told)
        commit_files(self._spark, writer)
        made = answers([writer])
        assert len(acknowledged(made)) == len(ids), made
        return [answer.seconds for answer in made]


def lengthen(table: Table, count: int) -> None:
    """Give a log more versions, as a writer makes them that commits nothing each time.

    The last checkpoint is of the newest version before and after: nothing else changes between.
    """
    last = latest_version(table)
    (info,) = (action["commitInfo"] for action in commit(table, last) if "commitInfo" in action)
    for version in range(last + 1, last + 1 + count):
        info["inCommitTimestamp"] += 1
        info.update({"readVersion": version - 1, "txnId": f"empty-{version}", "tags": {}})
        text = json.dumps({"commitInfo": info})
        commit_file(table, version).write_text(f"{text}\n", encoding="utf-8")
    log, newest = commit_file(table, last).parent, last + count
    shutil.copy(*(log / f"{version:020}.checkpoint.parquet" for version in (last, newest)))
    last_checkpoint = json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))
    del last_checkpoint["checksum"]
    text = json.dumps(last_checkpoint | {"version": newest})
    (log / "_last_checkpoint").write_text(text, encoding="utf-8")


def line(name: str, sizes: Sequence[int], measure: Callable[[int], float]) -> list[list[str]]:
    """Measure at each size, at the first of them twice, since that loads the classes."""
    measure(sizes[0])
    seconds = [measure(size) for size in sizes]
    return [
        [name, *(f"{size:,}" for size in sizes), "last/first"],
        ["", *(f"{s * 1000:.0f} ms" for s in seconds), f"{seconds[-1] / seconds[0]:.2f}"],
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a commit costs as tables grow.")
    parser.add_argument("--quick", action="store_true", help="smaller tables, in four minutes")
    parser.add_argument("--table", action="append", choices=SIZES, help="of the measurements")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else SIZES
    for name in arguments.table or sizes:
        with tempfile.TemporaryDirectory() as folder, classic_session(**SETTINGS) as spark:
            print_table(line(name, sizes[name], getattr(Bench(spark, Path(folder)), name)))


if __name__ == "__main__":
    main()
