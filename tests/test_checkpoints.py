"""How far the last checkpoint may be behind the commits of a table with a coordinator."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.writers import POLL_SECONDS, Writer, answers, make_files, start
from tests.log_replay import check_log
from tests.support import Table, await_checkpoints, deltalake_rows, latest_version, make_table, rows

INTERVAL = 3


def log_of(table: Table) -> Path:
    return table.path / "_delta_log"


def commit_file(table: Table, version: int) -> Path:
    return log_of(table) / f"{version:020}.json"


def checkpoints(table: Table) -> dict[int, float]:
    """Tell when each was there, by its version."""
    found = log_of(table).glob("*.checkpoint*.parquet")
    return {int(file.name[:20]): file.stat().st_mtime for file in found}


def checkpointed(spark: SparkSession, path: Path, *inserts: int) -> Table:
    """Make a table with a commit for each, and checkpoints that are due often."""
    table = make_table(
        spark,
        path,
        policy="row_level",
        columns="(id BIGINT) USING delta",
        properties={"delta.checkpointInterval": str(INTERVAL)},
        statements=tuple(f"INSERT INTO {{t}} VALUES ({number})" for number in inserts),
    )
    await_checkpoints(spark)
    return table


@contextmanager
def no_free_core(spark: SparkSession) -> Iterator[None]:
    """Let no job begin, the one of a checkpoint included."""
    cores = spark.sparkContext.defaultParallelism
    with socket.create_server(("127.0.0.1", 0), backlog=cores) as server:
        address = server.getsockname()

        def wait(_: int) -> None:
            with socket.create_connection(address) as held:
                held.recv(1)

        job = threading.Thread(
            target=lambda: spark.sparkContext.parallelize(range(cores), cores).foreach(wait)
        )
        job.start()
        held = [server.accept()[0] for _ in range(cores)]
        try:
            yield
        finally:
            for connection in held:
                connection.close()
            job.join()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(POLL_SECONDS)


def without_checkpoints(table: Table, copy: Path, *, age: int) -> Table:
    """Copy a table, which this process then has not written: one was due `age` seconds ago."""
    found = Table(Path(shutil.copytree(table.path, copy)))
    for file in log_of(found).glob("*checkpoint*"):
        file.unlink()
    for version in range(latest_version(found) + 1):
        ago = age if version <= INTERVAL else 0
        os.utime(commit_file(found, version), (time.time() - ago,) * 2)
    return found


def test_no_commit_is_more_than_two_intervals_ahead_of_the_last_checkpoint(
    spark: SparkSession, table_path: Path
) -> None:
    table = checkpointed(spark, table_path)
    make_files(table, range(10, 34))
    told = [str(table_path.with_name(f"writer-{n}")) for n in range(4)]
    writers = [
        Writer(str(table.path), 10 + 6 * n, 6, "commit", lines) for n, lines in enumerate(told)
    ]
    with no_free_core(spark):
        start(spark, [asdict(writer) for writer in writers])
        wait_until(lambda: latest_version(table) == 2 * INTERVAL)
    wait_until(lambda: all(Path(lines).read_text().endswith("{}\n") for lines in told))
    assert [answer.error for answer in answers(writers)] == [None] * 24
    await_checkpoints(spark)
    there = checkpoints(table)
    for version in range(2 * INTERVAL + 1, 25):
        made = commit_file(table, version).stat().st_mtime
        assert [last for last in there if last >= version - 2 * INTERVAL and there[last] <= made]
    assert rows(spark, table) == deltalake_rows(table) == tuple((n,) for n in range(10, 34))
    check_log(table)


@pytest.mark.parametrize("age", [8, 60])
def test_one_that_nobody_writes_is_waited_for_ten_seconds_and_after_a_minute_made_up_for(
    spark: SparkSession, table_path: Path, age: int
) -> None:
    made = checkpointed(spark, table_path, *range(2 * INTERVAL))
    table = without_checkpoints(made, table_path.with_name("copy"), age=age)
    spark.sql(f"INSERT INTO {table} VALUES (6)")
    await_checkpoints(spark)
    assert list(checkpoints(table)) == ([7] if age == 60 else [])
    waited = commit_file(table, 7).stat().st_mtime - commit_file(table, INTERVAL).stat().st_mtime
    assert waited >= 10
    assert rows(spark, table) == deltalake_rows(table) == tuple((n,) for n in range(7))
