"""Writers of one table: threads in driver processes, each telling what became of its commits.

A writer appends ids of its own, one per commit, and leaves one JSON line for each in a file, after
its statement has returned. The lines that are there when a process is killed stay.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.compiled import compiled
from tests.kit.driver_process import DriverProcess
from tests.kit.support import Table
from tests.storage import s3

POLL_SECONDS = 0.05

# Delta's errors for a log in which a version is missing between others.
_GAP = re.compile("DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_MISSING_FILES_UNEXPECTED_VERSION")
_following: list[tuple[Callable[[], StreamingQuery], StreamingQuery]] = []


@dataclass(frozen=True)
class Writer:
    """One thread's work: the ids `first`, `first + 1`, ... one commit each.

    Attributes:
        table: its folder or URL
        how: "insert" runs a statement of SQL for each; "commit" commits a file that is there;
            "deltalake" writes them with delta-rs, to a bucket at `s3.DELTALAKE_ENDPOINT`; "count"
            adds one to `n` of the only row instead
        lines: the file for its answers; `{}` is the last
        seconds: after which it begins no more

    """

    table: str
    first: int
    commits: int
    how: str
    lines: str
    seconds: float = 1e6


@dataclass(frozen=True)
class Answer:
    """What a writer was told about one commit."""

    id: int
    seconds: float
    version: int | None = None
    error: str | None = None


def plan(table: Table, folder: Path, *, writers: int, commits: int, how: str) -> list[Writer]:
    """Divide ids from 0 on between writers, and make their files if they are to be there."""
    if how == "commit":
        make_files(table, range(writers * commits))
    return [
        Writer(table.location, n * commits, commits, how, str(folder / f"writer-{n}"))
        for n in range(writers)
    ]


def make_files(table: Table, ids: Sequence[int]) -> None:
    """Write a data file of one row for each id."""
    for identifier in ids:
        row = pyarrow.table({"id": pyarrow.array([identifier], pyarrow.int64())})
        pyarrow.parquet.write_table(row, table.path / f"{identifier}.parquet")


def run(drivers: Sequence[DriverProcess], writers: Sequence[Writer], patience: float) -> float:
    """Run writers side by side, dealt out to the processes; return the seconds they took."""
    start = time.perf_counter()
    for n, driver in enumerate(drivers):
        mine = [asdict(writer) for writer in writers[n :: len(drivers)]]
        order(driver, f"from integration.writers import start; start(spark, {mine!r})")
    end = start + patience
    while any(_lines(writer)[-1:] != ["{}"] for writer in writers):
        assert time.perf_counter() < end, "the writers did not come to their end"
        assert all(driver.process.poll() is None for driver in drivers), "a driver died"
        time.sleep(POLL_SECONDS)
    return time.perf_counter() - start


def order(driver: DriverProcess, code: str) -> None:
    """Run Python in a driver; `spark` is its session."""
    answer = driver.run(f"spark.version; {code}")
    assert answer.error is None, answer.message


def answers(writers: Sequence[Writer]) -> list[Answer]:
    """Read what all were told."""
    lines = [line for writer in writers for line in _lines(writer)]
    return [Answer(**json.loads(line)) for line in lines if line != "{}"]


def acknowledged(told: Sequence[Answer]) -> list[int]:
    return [answer.id for answer in told if answer.error is None]


def _lines(writer: Writer) -> list[str]:
    path = Path(writer.lines)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


# What follows runs in the driver process.


def start(spark: SparkSession, writers: Sequence[dict[str, Any]]) -> None:
    """Start one thread for each writer and return."""
    for fields in writers:
        threading.Thread(target=_write, args=(spark, Writer(**fields)), daemon=True).start()


def delta_log(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)


def _write(spark: SparkSession, writer: Writer) -> None:
    try:
        _HOW[writer.how](spark, writer)
    except Exception as error:
        failed = json.dumps(asdict(Answer(-1, 0.0, error=str(error))))
        Path(writer.lines).write_text(f"{failed}\n{{}}\n", encoding="utf-8")
        raise


def commit_files(spark: SparkSession, writer: Writer) -> None:
    """Commit a writer's files, and write down what became of each."""
    appends = compiled(spark, "Appends")
    log = delta_log(spark, writer.table)
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    appends.run(log, writer.first, writer.commits, float(writer.seconds), writer.lines)


def _insert(spark: SparkSession, writer: Writer) -> None:
    _each(
        writer,
        lambda identifier: spark.sql(f"INSERT INTO delta.`{writer.table}` VALUES ({identifier})"),
    )


def _count(spark: SparkSession, writer: Writer) -> None:
    _each(writer, lambda _: spark.sql(f"UPDATE delta.`{writer.table}` SET n = n + 1"))


def _write_with_deltalake(spark: SparkSession, writer: Writer) -> None:
    from deltalake import write_deltalake

    options = s3.deltalake_options(str(spark.conf.get(s3.DELTALAKE_ENDPOINT)))

    def write(identifier: int) -> None:
        row = pyarrow.table({"id": pyarrow.array([identifier], pyarrow.int64())})
        write_deltalake(writer.table, row, mode="append", storage_options=options)

    _each(writer, write)


_HOW = {
    "insert": _insert,
    "commit": commit_files,
    "deltalake": _write_with_deltalake,
    "count": _count,
}


def _each(writer: Writer, commit: Callable[[int], object]) -> None:
    """Commit one id after the other, and write down what became of each."""
    end = time.perf_counter() + writer.seconds
    with Path(writer.lines).open("w", encoding="utf-8") as lines:
        for identifier in range(writer.first, writer.first + writer.commits):
            begun, error = time.perf_counter(), None
            if begun > end:
                break
            try:
                commit(identifier)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            answer = Answer(identifier, time.perf_counter() - begun, error=error)
            lines.write(json.dumps(asdict(answer)) + "\n")
            lines.flush()
        lines.write("{}\n")


def begin(spark: SparkSession, table: str) -> None:
    """Start a transaction that `end` commits."""
    compiled(spark, "Appends").begin(delta_log(spark, table))


def end(spark: SparkSession, identifier: int) -> float:
    """Commit it, and return the seconds that this took."""
    seconds: float = compiled(spark, "Appends").end(identifier)
    return seconds


@contextmanager
def streaming_copy(driver: DriverProcess, table: Table, folder: Path) -> Iterator[Table]:
    """Let a streaming query of `driver` copy a table; in the end the copy has all of it."""
    copy = Table(folder / "copy")
    order(
        driver,
        f"from integration.writers import follow; follow(spark, {str(table.path)!r}, "
        f"{str(copy.path)!r})",
    )
    yield copy
    order(driver, "from integration.writers import caught_up; caught_up()")


def follow(spark: SparkSession, table: str, copy: str) -> None:
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 10**6).load(table)
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{copy}-state")
    start = partial(writer.start, copy)
    _following.append((start, start()))


def caught_up() -> None:
    """Wait until the query has copied all, and end it; raise what it has ended with meanwhile.

    If that is a gap in a listing, it goes on from its checkpoint (docs/limits.md).
    """
    start, query = _following.pop()
    while _GAP.search(str(query.exception())):
        query = start()
    query.processAllAvailable()
    query.stop()
