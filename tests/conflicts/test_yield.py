"""Compactions that make way for running jobs: cells with YIELD in a policy of the user's own."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event
from typing import Any

import interlock
import pytest
from interlock.errors import ConcurrentDeleteReadError
from interlock.lab.model import Rows
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit import own_policy
from tests.kit.driver_process import driver_processes
from tests.kit.entry_points import set_for_now
from tests.kit.gates import Keeper, end_behind
from tests.kit.log_replay import check_log
from tests.kit.snapshots import queue_of
from tests.kit.support import (
    Table,
    await_running,
    deltalake_rows,
    latest_version,
    make_table,
    race,
    rows,
    sql_job,
    unknown_files,
    versions,
)

CELLS = {**own_policy.CELLS, ("COMPACT_MINOR", "MUTATE"): "YIELD"}
TO_ALL = {**CELLS, ("COMPACT_MINOR", "OVERWRITE"): "YIELD"}
YIELDS = {
    own_policy.KEY: own_policy.text(CELLS),
    "spark.interlock.policies.to_all": own_policy.text(TO_ALL),
}
COLUMNS = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
STATEMENTS = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (5, 'e', 2)",
    "INSERT INTO {t} VALUES (3, 'c', 1), (6, 'f', 2)",
)
START: Rows = ((1, "a", 1), (2, "b", 1), (3, "c", 1), (5, "e", 2), (6, "f", 2))
X1 = "UPDATE {t} SET v = 'X' WHERE id = 1 AND p = 1"
WITH_X1: Rows = ((1, "X", 1), *START[1:])
COMPACT = "ALTER TABLE {t} COMPACT MINOR"
MERGE = (
    "MERGE INTO {t} t USING (SELECT col1 AS id FROM VALUES (1)) s ON t.id = s.id AND t.p = 1 "
    "WHEN MATCHED THEN UPDATE SET v = 'X'"
)
YIELDED = "INTERLOCK_COMPACTION_YIELDED"
READ = 2
WAITED = 8


@pytest.fixture(autouse=True)
def _policy(spark: SparkSession) -> Iterator[None]:
    with set_for_now(spark, YIELDS):
        yield


@pytest.fixture
def table(spark: SparkSession, table_path: Path) -> Table:
    return table_of(spark, table_path)


def table_of(
    spark: SparkSession,
    path: Path,
    policy: str = "ours",
    *,
    vectors: bool = False,
    auto: bool = False,
) -> Table:
    properties = {
        "delta.enableDeletionVectors": str(vectors).lower(),
        "delta.autoOptimize.autoCompact": str(auto).lower(),
    }
    return make_table(
        spark,
        path,
        policy=policy,
        columns=COLUMNS,
        statements=STATEMENTS,
        properties=properties,
    )


def assert_yielded(error: BaseException | None) -> ConcurrentDeleteReadError:
    assert isinstance(error, ConcurrentDeleteReadError), error
    assert error.condition == YIELDED
    assert (error.operation_class, error.winner_version) == ("COMPACT_MINOR", None)
    return error


def assert_table(spark: SparkSession, table: Table, last: int, expected: Rows) -> None:
    """Check the newest rows, those of the version before the race, and that no file is left."""
    assert versions(table) == list(range(last + 1))
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert rows(spark, table, version=READ) == deltalake_rows(table, version=READ) == START
    assert unknown_files(table) == []


@contextmanager
def started(
    spark: SparkSession, statement: str, release: Path
) -> Iterator[Callable[[], BaseException | None]]:
    """Run a statement with `{wait}`, a condition that is true once the test goes on.

    Yields when it waits; what is yielded gives its error.
    """
    arrived = release.with_suffix(".arrived")

    def wait(_: int) -> bool:
        arrived.touch()
        while not release.exists():
            time.sleep(0.02)
        return True

    spark.udf.register("wait", wait, "boolean")
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(spark.sql, statement)
        try:
            while not arrived.exists():
                assert not end.done(), end.exception()
                time.sleep(0.02)

            def go() -> BaseException | None:
                release.touch()
                return end.exception()

            yield go
        finally:
            release.touch()


@pytest.mark.variant_cases(but=["UPDATE", "MERGE"])
@pytest.mark.parametrize(
    ("compact", "job", "vectors", "files"),
    [
        (COMPACT, X1, False, 1),
        ("OPTIMIZE {t}", X1, True, 1),
        ("ALTER TABLE {t} COMPACT MAJOR", MERGE, False, 2),
    ],
    ids=["UPDATE", "UPDATE with vectors", "MERGE"],
)
def test_it_makes_way_for_a_job_at_its_commit(
    spark: SparkSession, table_path: Path, compact: str, job: str, files: int, *, vectors: bool
) -> None:
    table = table_of(spark, table_path, vectors=vectors)
    before = datetime.now(timezone.utc)
    first, second = race(spark, *(sql_job(job.format(t=table)) for job in (compact, job)))
    assert second.error is None
    error = assert_yielded(first.error)
    assert error.rule == "COMPACT_MINOR -> MUTATE"
    assert (error.read_version, error.scope, len(error.files)) == (READ, "p=1", files)
    assert_table(spark, table, READ + 1, WITH_X1)
    who, since = str(error.why).split("for a job of ")[1].split(" that has been running since ")
    assert who == f"ann in {spark.sparkContext.applicationId}"
    began = datetime.fromisoformat(since.replace("Z", "+00:00"))
    assert before - timedelta(milliseconds=1) <= began <= datetime.now(timezone.utc)
    (record,) = interlock.table(spark, str(table)).conflicts()
    assert (record.condition, record.winners, record.txn_id) == (YIELDED, (), error.txn_id)
    told = interlock.table(spark, str(table)).explain(error)
    assert "read version 2 and made way for a running job." in told.text
    assert "Yes, when the job that it made way for has ended." in told.text
    spark.sql(compact.format(t=table))
    assert latest_version(table) == READ + 2
    assert rows(spark, table) == deltalake_rows(table) == WITH_X1


@pytest.mark.parametrize(
    "job",
    [
        "UPDATE {t} SET v = 'X' WHERE id = 1 AND p = 1 AND wait(id)",
        MERGE.replace("VALUES (1)", "VALUES (1) WHERE wait(col1)"),
        "INSERT OVERWRITE {t} SELECT id, IF(id = 1, 'X', v), p FROM {t} WHERE wait(id)",
    ],
    ids=["UPDATE", "MERGE with no scan yet", "overwrite"],
)
def test_it_makes_way_for_a_job_that_reads(
    spark: SparkSession, table_path: Path, tmp_path: Path, job: str
) -> None:
    table = table_of(spark, table_path, "to_all")
    with started(spark, job.format(t=table), tmp_path / "go") as end:
        with pytest.raises(ConcurrentDeleteReadError) as caught:
            spark.sql(COMPACT.format(t=table))
        assert_yielded(caught.value)
        assert end() is None
    assert_table(spark, table, READ + 1, WITH_X1)


@pytest.mark.variant_cases("an INSERT that reads nothing")
@pytest.mark.parametrize(
    "job",
    [
        "UPDATE {t} SET v = 'X' WHERE p = 2 AND id = 5 AND wait(id)",
        "INSERT INTO {t} SELECT 9, 'z', 1 FROM {t} WHERE p = 1 AND id = 1 AND wait(id)",
        "INSERT INTO {t} SELECT 9, 'z', id FROM range(1, 2) WHERE wait(id)",
    ],
    ids=["other files", "a class without YIELD", "an INSERT that reads nothing"],
)
def test_it_commits_beside_other_jobs(
    spark: SparkSession, table: Table, tmp_path: Path, job: str
) -> None:
    with started(spark, job.format(t=table), tmp_path / "go") as end:
        spark.sql(f"ALTER TABLE {table} PARTITION (p = 1) COMPACT MINOR")
        assert end() is None
    kept, new = ((5, "X", 2), ()) if "UPDATE" in job else ((5, "e", 2), ((9, "z", 1),))
    assert_table(spark, table, READ + 2, (*START[:3], kept, START[4], *new))


def test_the_checksum_of_one_that_made_way_is_nobodys(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """Another process makes the version that it wanted, and the job the next."""
    other = Table(Path(shutil.copytree(table.path, tmp_path / "other")))
    spark.sql(f"INSERT INTO {other} VALUES (9, 'z', 2)")
    update = X1.format(t=table) + " AND wait(id)"
    with started(spark, update, tmp_path / "go") as end:
        with pytest.raises(ConcurrentDeleteReadError) as caught:
            spark.sql(COMPACT.format(t=table))
        assert_yielded(caught.value)
        shutil.copytree(other.path, table.path, dirs_exist_ok=True)
        queue_of(spark, table).catchUp(READ + 1)
        assert end() is None
    check_log(table)
    assert (table.path / f"_delta_log/{READ + 2:020}.crc").exists()
    assert_table(spark, table, READ + 2, (*WITH_X1, (9, "z", 2)))


def test_a_compaction_makes_no_way_for_a_compaction(spark: SparkSession, table: Table) -> None:
    first, second = race(spark, *(sql_job(COMPACT.format(t=table)) for _ in range(2)))
    assert first.error is None
    assert second.error is not None
    assert getattr(second.error, "rule", None) == "COMPACT_MINOR -> COMPACT_MINOR"
    assert_table(spark, table, READ + 1, START)


@pytest.mark.parametrize(("partition", "lost"), [(1, True), (2, False)])
def test_a_job_behind_a_compaction_is_judged_by_files(
    spark: SparkSession, table: Table, partition: int, *, lost: bool
) -> None:
    """The UPDATE has begun, but has read nothing when the compaction commits."""
    compact = f"ALTER TABLE {table} PARTITION (p = {partition}) COMPACT MINOR"
    update = X1.format(t=table)
    error = end_behind(spark, lambda: spark.sql(update), lambda: spark.sql(compact))
    if lost:
        assert isinstance(error, ConcurrentDeleteReadError)
        assert (error.rule, error.winner_version) == ("COMPACT_MINOR -> MUTATE", READ + 1)
        assert "removed files that it has read" in str(error)
    else:
        assert error is None
    assert_table(spark, table, READ + 2 - lost, START if lost else WITH_X1)


@pytest.mark.variant_cases("DELETE", "MERGE")
@pytest.mark.parametrize(
    "job",
    [
        "UPDATE {t} SET v = raise_error('no') WHERE id = 1",
        "DELETE FROM {t} WHERE id = 1 AND raise_error('no')",
        MERGE.replace("'X'", "raise_error('no')"),
        "INSERT OVERWRITE {t} SELECT id, raise_error('no'), p FROM {t}",
    ],
    ids=["UPDATE", "DELETE", "MERGE", "overwrite"],
)
def test_it_makes_no_way_for_a_job_that_has_failed(
    spark: SparkSession, table_path: Path, job: str
) -> None:
    table = table_of(spark, table_path, "to_all")
    keeper = Keeper(spark)
    keeper.install()
    try:
        with pytest.raises(PySparkException) as caught:
            spark.sql(job.format(t=table))
    finally:
        keeper.uninstall()
    assert "no" in str(caught.value)
    assert keeper.kept
    spark.sql(COMPACT.format(t=table))
    assert_table(spark, table, READ + 1, START)


def test_an_auto_compaction_makes_no_way_for_the_job_before_it(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path, vectors=True, auto=True)
    with set_for_now(spark, {"spark.databricks.delta.autoCompact.minNumFiles": "2"}):
        spark.sql(X1.format(t=table))
    assert latest_version(table) == READ + 2
    assert rows(spark, table) == WITH_X1


@contextmanager
def noted(table: Table, *, lives: bool = True, **changes: object) -> Iterator[Path]:
    """Have a note of another process that runs a job."""
    note = table.path / "_delta_log/_interlock/running/0f"
    note.parent.mkdir(parents=True, exist_ok=True)
    job = {"since": "0", "classes": ["MUTATE"], **changes}
    note.write_text(json.dumps({"since": "0", "owner": "eve in app-1", "changes": [job]}))
    ended = Event()

    def renew() -> None:
        while lives and not ended.wait(1):
            note.touch()

    with ThreadPoolExecutor(1) as other:
        other.submit(renew)
        try:
            yield note
        finally:
            ended.set()


@pytest.mark.parametrize(
    ("changes", "lost"),
    [({}, True), ({"files": ["other.parquet"]}, False), ({"classes": ["APPEND"]}, False)],
)
def test_a_note_of_another_process(
    spark: SparkSession, table: Table, changes: dict[str, Any], *, lost: bool
) -> None:
    start = time.monotonic()
    with noted(table, **changes):
        (end,) = race(spark, sql_job(COMPACT.format(t=table)))
    assert (time.monotonic() - start > WAITED) == lost
    if lost:
        error = assert_yielded(end.error)
        assert "here for a job of eve in app-1 that has been running since 1970-" in str(error)
    assert_table(spark, table, READ + (not lost), START)


def test_a_note_of_a_process_that_is_gone(spark: SparkSession, table: Table) -> None:
    with noted(table, lives=False) as note:
        spark.sql(COMPACT.format(t=table))
        assert not note.exists()
    assert latest_version(table) == READ + 1


@pytest.mark.variant
def test_a_job_of_another_process(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    with driver_processes(tmp_path, "interlock", settings=YIELDS) as (process,):
        process.hold(X1.format(t=table))
        await_running(table, text="MUTATE")
        spark.sql(f"ALTER TABLE {table} PARTITION (p = 2) COMPACT MINOR")
        with pytest.raises(ConcurrentDeleteReadError) as caught:
            spark.sql(COMPACT.format(t=table))
        assert_yielded(caught.value)
        assert process.open().error is None
        spark.sql(COMPACT.format(t=table))  # waits until the note is gone
    assert_table(spark, table, READ + 3, WITH_X1)
