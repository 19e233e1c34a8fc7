"""Log clean-up and VACUUM, for real, between a job's read and its commit."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import ConcurrentDeleteReadError, ConcurrentWriteError
from pyspark.sql import SparkSession

from tests.kit.foreign import vacuum as vacuum_by_stock
from tests.kit.log_replay import check_log
from tests.kit.support import (
    JobResult,
    Table,
    await_checkpoints,
    deltalake_rows,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    versions,
)

DAY = 24 * 60 * 60
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "2"}
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"


def insert(spark: SparkSession, table: Table, *ids: int) -> None:
    for n in ids:
        spark.sql(f"INSERT INTO {table} VALUES ({n}, 'i')")
        await_checkpoints(spark)


def clean_up(spark: SparkSession, table: Table, until: int) -> None:
    """Make the versions before a checkpoint too old for the log, and let Delta delete them."""
    for file in (table.path / "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < until:
            old = time.time() - 60 * DAY + int(file.name[:20])
            os.utime(file, (old, old))
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table.path))
    log.doLogCleanup(log.unsafeVolatileSnapshot(), jvm.scala.Option.empty())
    assert versions(table)[0] == until


def behind(spark: SparkSession, winners: Callable[[SparkSession], object], last: str) -> JobResult:
    """Run `winners` while `last` stands at its commit."""
    first, held = race(spark, python_job("winners", winners), sql_job(last))
    assert first.error is None, first.error
    assert held.held
    return held


def data_files(table: Table) -> set[str]:
    return {file.name for file in table.path.iterdir() if file.suffix in (".parquet", ".bin")}


def check_lost(error: Exception | None, read_version: int) -> None:
    assert isinstance(error, ConcurrentWriteError)
    assert (error.condition, error.rule) == ("INTERLOCK_CONCURRENT_WRITE", "commits that are gone")
    assert (error.read_version, error.winner_version) == (read_version, read_version + 1)
    assert "delta.logRetentionDuration" in str(error)


@pytest.mark.variant_cases("INSERT*", "ALTER*")
@pytest.mark.parametrize(
    "last", ["INSERT INTO {t} VALUES (9, 'l')", "UPDATE {t} SET v = 'l' WHERE id = 1", MAJOR]
)
def test_commits_that_are_gone_are_a_conflict(
    spark: SparkSession, table_path: Path, last: str
) -> None:
    table = make_table(spark, table_path, properties=PROPERTIES)
    there: set[str] = set()

    def winners(session: SparkSession) -> None:
        before = data_files(table)
        insert(session, table, 3, 4, 5, 6)
        clean_up(session, table, until=4)
        there.update(data_files(table) - before)

    before = data_files(table)
    check_lost(behind(spark, winners, last.format(t=table)).error, read_version=2)
    assert data_files(table) == before | there
    assert versions(table) == [4, 5, 6]
    expected = ((1, "a"), (2, "b"), (3, "c"), (3, "i"), (4, "i"), (5, "i"), (6, "i"))
    assert rows(spark, table) == deltalake_rows(table) == expected


@pytest.mark.variant_cases(but=["next-is-gone"])
@pytest.mark.parametrize(
    ("wrote_last", "until"),
    [(False, 4), (True, 4), (True, 6)],
    ids=["unknown", "own-is-gone", "next-is-gone"],
)
def test_commits_of_another_process_that_are_gone(
    spark: SparkSession, table_path: Path, *, wrote_last: bool, until: int
) -> None:
    """Missed commits were cleaned up; the process itself may have made the one before them."""
    table = make_table(spark, table_path, properties=PROPERTIES)
    if wrote_last:
        insert(spark, table, 0)
    read = latest_version(table)

    def winners(session: SparkSession) -> None:
        copy = Table(shutil.copytree(table.path, table.path.with_name("copy")))
        insert(session, copy, *range(read + 1, 7))
        clean_up(session, copy, until)
        shutil.copytree(copy.path, table.path, dirs_exist_ok=True)
        for version in range(until):
            for file in (table.path / "_delta_log").glob(f"*{version:020}.*"):
                file.unlink()

    check_lost(behind(spark, winners, f"INSERT INTO {table} VALUES (9, 'l')").error, read)
    assert versions(table) == list(range(until, 7))
    assert (9, "l") not in rows(spark, table)


@pytest.mark.variant_cases(but=["True"])
@pytest.mark.parametrize("vacuum", [True, False])
def test_a_rebase_behind_a_compaction_and_a_vacuum(
    spark: SparkSession, table_path: Path, *, vacuum: bool
) -> None:
    """VACUUM deletes the deletion vector that the rebase would need to follow the DELETE's rows."""
    values = "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'a' FROM range(10)"
    delete = "DELETE FROM {t} WHERE id = 3"
    table = make_table(spark, table_path, properties=PROPERTIES, statements=(values, delete))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    (vector,) = table_path.glob("*.bin")

    def winners(session: SparkSession) -> None:
        on_its_way = [file for file in table.path.glob("*.bin") if file != vector]
        assert on_its_way
        session.sql(MAJOR.format(t=table))
        soon = time.time() + DAY
        for file in on_its_way:
            os.utime(file, (soon, soon))
        if vacuum:
            vacuum_by_stock(session, table)
            assert not vector.exists()

    error = behind(spark, winners, f"DELETE FROM {table} WHERE id = 5").error
    if vacuum:
        assert isinstance(error, ConcurrentDeleteReadError)
        assert "VACUUM must retain" in str(error)
        assert list(table_path.glob("*.bin")) == []
    else:
        assert error is None
    expected = tuple((n, "a") for n in range(10) if n != 3 and (vacuum or n != 5))
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert len(check_log(table)) == 1
