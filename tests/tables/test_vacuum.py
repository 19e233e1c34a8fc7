"""VACUUM while jobs run: Interlock's keeps what they need; that of another writer does not."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from interlock.errors import UsageError
from pyspark.sql import SparkSession

from tests.kit.foreign import vacuum
from tests.kit.support import (
    await_none_running,
    await_running,
    confs,
    deltalake_rows,
    last_of,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
)

RETENTION = "io.interlock.spark.statements.VacuumRetention"
VACUUM = "VACUUM {t} RETAIN 0 HOURS"
INSERT = "INSERT INTO {t} VALUES (9, 'z')"
ALL = ((1, "a"), (2, "b"), (3, "c"))


@pytest.fixture(autouse=True)
def quick(spark: SparkSession) -> Iterator[None]:
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    with confs(spark, settings):
        yield


@pytest.mark.parametrize(
    ("policy", "statement"),
    [("maxcompute_delta", INSERT), ("row_level", "UPDATE {t} SET v = 'U' WHERE id = 1")],
)
def test_a_job_whose_files_were_deleted_fails(
    spark: SparkSession, table_path: Path, policy: str, statement: str
) -> None:
    table = make_table(spark, table_path, policy=policy)
    stock = python_job("VACUUM", lambda session: vacuum(session, table))
    _, last = race(spark, stock, sql_job(statement.format(t=table)))
    assert isinstance(last.error, UsageError)
    assert last.error.getCondition() == "INTERLOCK_FILES_VACUUMED"
    assert rows(spark, table) == deltalake_rows(table) == ALL
    spark.sql(statement.format(t=table))
    assert rows(spark, table) == deltalake_rows(table) != ALL


def test_what_a_running_job_needs_is_kept(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path)
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"ALTER TABLE {table} COMPACT MAJOR")
    with log_of(spark, RETENTION) as warnings:
        assert last_of(spark, table, (VACUUM,), INSERT) is None
    assert re.search(
        r"keeps the files of the last 1 h in place of the last 0 s: a job of \S+ in "
        + spark.sparkContext.applicationId,
        str(warnings),
    )
    assert rows(spark, table) == deltalake_rows(table) == ((2, "b"), (3, "c"), (9, "z"))
    assert rows(spark, table, version=2) == ALL
    with log_of(spark, RETENTION) as warnings:
        spark.sql(VACUUM.format(t=table))
    assert str(warnings) == ""
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        rows(spark, table, version=2)
    assert rows(spark, table) == deltalake_rows(table) == ((2, "b"), (3, "c"), (9, "z"))


def test_a_job_that_takes_longer_is_noted_beside_the_log(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path)
    await_none_running(table)
    begun = time.time()

    def look(_: SparkSession) -> None:
        told = await_running(table)
        assert begun - 1 < int(told["since"]) / 1000 < time.time()
        assert spark.sparkContext.applicationId in told["owner"]

    first, second = race(spark, python_job("look", look), sql_job(INSERT.format(t=table)))
    assert (first.error, second.error) == (None, None)
    await_none_running(table)


@pytest.mark.variant_cases(but=["True"])
@pytest.mark.parametrize("lives", [True, False])
def test_the_jobs_of_other_processes_count(
    spark: SparkSession, table_path: Path, *, lives: bool
) -> None:
    table = make_table(spark, table_path)
    note = table.path / "_delta_log/_interlock/running/0f"
    note.parent.mkdir(parents=True, exist_ok=True)
    since = int((time.time() - 30 * 3600) * 1000)
    note.write_text(json.dumps({"since": str(since), "owner": "ann in app-1"}))
    ended = Event()

    def renew() -> None:
        while not ended.wait(1):
            note.touch()

    with log_of(spark, RETENTION) as warnings, ThreadPoolExecutor(1) as other:
        spark.sql(f"VACUUM {table} RETAIN 200 HOURS")
        assert str(warnings) == ""
        if lives:
            other.submit(renew)
        try:
            spark.sql(VACUUM.format(t=table))
        finally:
            ended.set()
    if lives:
        assert "keeps the files of the last 31 h in place of the last 0 s" in str(warnings)
        assert "a job of ann in app-1 has been running on it for 1080" in str(warnings)
    assert note.exists() == lives
    assert bool(str(warnings)) == lives


def test_tables_without_a_policy_are_left_to_delta(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy=None)
    with log_of(spark, RETENTION) as warnings:
        start = time.monotonic()
        spark.sql(VACUUM.format(t=table))
        assert time.monotonic() - start < 20
    assert str(warnings) == ""
