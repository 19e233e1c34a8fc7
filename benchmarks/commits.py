"""Commits per second of small appends, next to stock Delta.

    python -m benchmarks.commits [--quick] [--how insert] [--store stock --store filesystem]
    python -m benchmarks.commits --on-s3 --processes 1 --store stock --store filesystem --writers 16
    python -m benchmarks.commits --slow-database --processes 1 --store "postgres 18" --writers 16
    python -m benchmarks.commits --slow-disk --processes 1 --store filesystem --writers 16
    python -m benchmarks.commits --store stock --store filesystem --writers 16 --tables 16

1, 4, 16 and 64 writers of one table, and 16 writers of 16 tables, are threads of at most four
processes, measured after a minute in which the JVMs compile their code. `commit` commits files that
are there already: what the log costs, end to end through Delta and the coordinator, without the
query. `insert` runs INSERT statements. A commit counts as kept if it was acknowledged and is in the
log exactly once. "behind" is the largest number of versions between `_last_checkpoint` and the
newest version, looked at ten times a second. "CPU" is the share of the machine's processors that
was busy meanwhile, with this program and all else that ran. With `--on-s3` the tables are on
S3Proxy, and each request waits 30 ms; stock Delta orders the commits of one process there. With
`--slow-database` each request to Postgres waits as long. With `--slow-disk` each fsync of the
processes waits 10 ms, which needs gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from interlock._small_session import JVM_OPTIONS

from benchmarks import slow_disk
from integration.opened import opened
from integration.stores import ON_S3, STOCK, STOCK_SAME_PROPERTIES, STORES, Store
from integration.writers import Writer, acknowledged, answers, make_files, run
from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.support import Table, commit, commit_file, versions
from tests.storage import s3
from tests.storage.faulty_s3 import DELAY_SECONDS, faulty

STOCKS = {store.name: store for store in (STOCK, STOCK_SAME_PROPERTIES)}
CONTENDERS = (*STOCKS, *STORES)
MOST_PER_SECOND = 400
PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        writers: numbers of writers
        processes: at most
        warm_up: seconds of commits before the first measurement, in which code is compiled
        seconds: of one measurement
        tables: numbers of tables for 16 writers, beside one
        repetitions: of each measurement of throughput, of which the medians are printed
        contenders: unless others are chosen

    """

    writers: tuple[int, ...] = (1, 4, 16, 64)
    processes: int = 4
    warm_up: float = 60.0
    seconds: float = 20.0
    tables: tuple[int, ...] = (16,)
    repetitions: int = 1
    contenders: tuple[str, ...] = CONTENDERS


QUICK = Scale(
    writers=(1, 16),
    processes=2,
    warm_up=6,
    seconds=5,
    tables=(),
    contenders=(STOCK.name, STORES[0], STORES[-1]),
)


@dataclass(frozen=True)
class Row:
    """One measurement, or the medians of several; times in seconds, `cpu` a share of 1."""

    store: str
    writers: int
    tables: int
    kept_per_second: float
    lost: int
    refused: int
    median: float
    p99: float
    longest: float
    behind: int
    cpu: float


def medians(rows: Sequence[Row]) -> Row:
    """Return the median of each figure; `lost` and `refused` in sum, `behind` at its largest."""
    measured = ("kept_per_second", "median", "p99", "longest", "cpu")
    return replace(
        rows[0],
        lost=sum(row.lost for row in rows),
        refused=sum(row.refused for row in rows),
        behind=max(row.behind for row in rows),
        **{name: statistics.median(getattr(row, name) for row in rows) for name in measured},
    )


class Bench:
    """The processes of one contender, and new tables for each measurement."""

    def __init__(
        self, store: Store, drivers: Sequence[DriverProcess], folder: Path, how: str
    ) -> None:
        self._store = store
        self._drivers = drivers
        self._folder = folder
        self._how = how
        self._made = 0

    def warm_up(self, seconds: float) -> None:
        """Let each process commit, and write a checkpoint, until its code is there."""
        self.throughput(2 * len(self._drivers), len(self._drivers), seconds)
        for n, driver in enumerate(self._drivers):
            table = self._table(range(20))
            run([driver], [Writer(table.location, 0, 20, self._how, self._lines(n))], 120)

    def throughput(self, writers: int, tables: int, seconds: float) -> Row:
        """Let writers commit for some seconds, dealt out to the tables."""
        most = int(MOST_PER_SECOND * seconds / writers) + 10
        made = [self._table(range(writers * most)) for _ in range(tables)]
        planned = [
            Writer(made[n % tables].location, n * most, most, self._how, self._lines(n), seconds)
            for n in range(writers)
        ]
        with watched(made) as behind:
            busy_before, all_before = processor_times()
            took = run(self._drivers, planned, seconds + PATIENCE_SECONDS)
            busy, all_times = processor_times()
        told = answers(planned)
        there = Counter(i for table in made for i in ids(table))
        for error in {answer.error for answer in told if answer.error}:
            print(f"{self._store.name}: {error}", file=sys.stderr)
        kept = [i for i in acknowledged(told) if there[i] == 1]
        times = sorted(answer.seconds for answer in told)
        return Row(
            store=self._store.name,
            writers=writers,
            tables=tables,
            kept_per_second=len(kept) / took,
            lost=len(acknowledged(told)) - len(kept),
            refused=len(told) - len(acknowledged(told)),
            median=statistics.median(times),
            p99=times[int(len(times) * 0.99)],
            longest=times[-1],
            behind=max(behind),
            cpu=(busy - busy_before) / (all_times - all_before),
        )

    def _table(self, identifiers: range) -> Table:
        self._made += 1
        table = self._store.table(self._store.folder(self._folder) / f"table-{self._made}")
        created = self._drivers[0].run(self._store.create(table))
        assert created.error is None, created.message
        if self._how == "commit":
            make_files(table, identifiers[:1])
            for identifier in identifiers[1:]:
                os.link(table.path / "0.parquet", table.path / f"{identifier}.parquet")
        return table

    def _lines(self, writer: int) -> str:
        return str(self._folder / f"told-{self._made}-{writer}")


def ids(table: Table) -> list[int]:
    """List the ids of all files that the log adds."""
    adds = (a["add"] for v in versions(table) for a in commit(table, v) if "add" in a)
    return [json.loads(add["stats"])["minValues"]["id"] for add in adds]


@contextmanager
def watched(tables: Sequence[Table]) -> Iterator[list[int]]:
    """Look ten times a second how far the tables' last checkpoints are behind their versions."""
    ended = threading.Event()
    behind = [0]

    def watch() -> None:
        newest, last = [0] * len(tables), [0] * len(tables)
        while not ended.wait(0.1):
            for n, table in enumerate(tables):
                while commit_file(table, newest[n] + 1).exists():
                    newest[n] += 1
                last[n] = last_checkpoint(table) or last[n]
                behind.append(newest[n] - last[n])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield behind
    finally:
        ended.set()
        watcher.join()


def last_checkpoint(table: Table) -> int:
    """Return the version that `_last_checkpoint` names, 0 if it is just being replaced."""
    try:
        text = (table.path / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8")
        return int(json.loads(text)["version"])
    except (FileNotFoundError, json.JSONDecodeError):
        return 0


def processor_times() -> tuple[int, int]:
    """Return for how long the machine's processors were busy, and were there, since its start."""
    first, *_ = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
    user, nice, system, idle, waiting, interrupts, soft, stolen = map(int, first.split()[1:9])
    busy = user + nice + system + interrupts + soft + stolen
    return busy, busy + idle + waiting


@contextmanager
def contender(name: str, folder: Path, *, on_s3: bool, slow_database: bool) -> Iterator[Store]:
    """Start what the sessions of a contender need."""
    with ExitStack() as stack:
        store = STOCKS.get(name)
        if store is None:
            store, database = stack.enter_context(opened(name, folder / "database"))
            if database is not None and slow_database:
                database.proxy.delay = DELAY_SECONDS
                store = replace(store, settings=database.settings("bench", proxied=True))
        if on_s3:
            server = stack.enter_context(s3.start(folder / "s3"))
            proxy = stack.enter_context(faulty(server.port, kinds=()))
            store = store.on(server.storage(port=proxy.port), server.bucket, ON_S3)
        yield store


def measure(
    store: Store, folder: Path, scale: Scale, how: str, environment: Mapping[str, str]
) -> list[Row]:
    """Run all measurements of one contender."""
    settings = {"spark.driver.extraJavaOptions": JVM_OPTIONS, **store.settings}
    kinds = [store.kind] * scale.processes
    with driver_processes(folder, *kinds, settings=settings, environment=environment) as drivers:
        bench = Bench(store, drivers, folder, how)
        bench.warm_up(scale.warm_up)
        rows = []
        for writers, tables in [*((w, 1) for w in scale.writers), *((16, t) for t in scale.tables)]:
            measured = []
            for _ in range(scale.repetitions):
                measured.append(bench.throughput(writers, tables, scale.seconds))
                print(measured[-1], file=sys.stderr, flush=True)
            rows.append(medians(measured))
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="less of each, in three minutes")
    parser.add_argument("--how", choices=("commit", "insert"), default="commit")
    parser.add_argument("--store", action="append", choices=CONTENDERS)
    parser.add_argument("--writers", type=int, action="append", help="of one table")
    parser.add_argument("--tables", type=int, action="append", help="of 16 writers, beside one")
    parser.add_argument("--seconds", type=float, help="of one measurement")
    parser.add_argument("--repetitions", type=int, help="of which the medians are printed")
    parser.add_argument("--processes", type=int, help="of the writers")
    parser.add_argument("--on-s3", action="store_true", help="tables on a slow S3 server")
    parser.add_argument("--slow-database", action="store_true", help="Postgres behind a slow line")
    parser.add_argument("--slow-disk", action="store_true", help="10 ms for each fsync")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else Scale()
    if arguments.seconds is not None:
        scale = replace(scale, seconds=arguments.seconds)
    if arguments.repetitions is not None:
        scale = replace(scale, repetitions=arguments.repetitions)
    if arguments.processes is not None:
        scale = replace(scale, processes=arguments.processes)
    if arguments.writers:
        scale = replace(scale, writers=tuple(arguments.writers), tables=())
    if arguments.tables:
        scale = replace(scale, tables=tuple(arguments.tables))
    rows: list[Row] = []
    for name in arguments.store or scale.contenders:
        with (
            tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder,
            contender(
                name,
                Path(folder),
                on_s3=arguments.on_s3,
                slow_database=arguments.slow_database,
            ) as store,
        ):
            environment = slow_disk.slowing(Path(folder)) if arguments.slow_disk else {}
            rows += measure(store, Path(folder), scale, arguments.how, environment)
    print_columns([HEADS, *(cells(row) for row in rows)])


HEADS = [
    *("store", "writers", "tables", "kept/s", "lost", "refused"),
    *("median", "p99", "longest wait", "behind", "CPU"),
]


def cells(row: Row) -> list[str]:
    times = [f"{seconds * 1000:.0f} ms" for seconds in (row.median, row.p99, row.longest)]
    counts = [str(n) for n in (row.writers, row.tables)]
    return [
        *(row.store, *counts, f"{row.kept_per_second:.1f}", str(row.lost), str(row.refused)),
        *times,
        str(row.behind),
        f"{row.cpu * 100:.0f} %",
    ]


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
