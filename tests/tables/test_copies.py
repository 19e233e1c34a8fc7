"""LIKE, CLONE, CTAS and RESTORE, each with and without a policy."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from interlock.errors import ConcurrentWriteError
from pyspark.sql import SparkSession

from tests.kit.properties import check_policy, latest, operations
from tests.kit.spark_version import since_4_2
from tests.kit.support import (
    Table,
    deltalake_rows,
    in_a_micro_batch,
    latest_version,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    tags,
    versions,
)

POLICY = "maxcompute_delta"
OTHER = "maxcompute_transactional"
RERUN = "io.interlock.spark.statements.Rerun"
EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))

CLONE = "CREATE TABLE {new} SHALLOW CLONE {old}"
CLONE_V1 = "CREATE TABLE {new} SHALLOW CLONE {old} VERSION AS OF 1"
LIKE = "CREATE TABLE {new_name} LIKE {old} LOCATION '{path}'"
CTAS = "CREATE TABLE {new} USING delta"


@pytest.mark.variant_cases(
    but=[
        "*LIKE*-None-maxcompute_delta",
        "*CLONE {old}-maxcompute_delta-None-maxcompute_delta",
        "CREATE TABLE {new} USING*-maxcompute_transactional",
    ]
)
@pytest.mark.parametrize(
    ("statement", "of", "sets", "policy"),
    [
        pytest.param(LIKE, POLICY, None, POLICY, marks=since_4_2),
        pytest.param(LIKE, POLICY, OTHER, OTHER, marks=[since_4_2, pytest.mark.soak]),
        pytest.param(LIKE, None, POLICY, POLICY, marks=since_4_2),
        (CLONE, POLICY, None, POLICY),
        (CLONE, POLICY, OTHER, OTHER),
        (CLONE, None, POLICY, POLICY),
        (CLONE, None, None, None),
        (CLONE_V1, POLICY, None, POLICY),
        (CLONE_V1, None, POLICY, POLICY),
        (CTAS, POLICY, None, None),
        (CTAS, POLICY, OTHER, OTHER),
    ],
)
def test_a_copy(
    spark: SparkSession,
    tmp_path: Path,
    statement: str,
    of: str | None,
    sets: str | None,
    policy: str | None,
) -> None:
    old = make_table(spark, tmp_path / "old", policy=of)
    new = Table(tmp_path / "new")
    text = statement.format(new=new, new_name=f"n_{abs(hash(new.path))}", old=old, path=new.path)
    if sets is not None:
        text += f" TBLPROPERTIES ('interlock.policy' = '{sets}')"
    if statement == CTAS:
        text += f" AS SELECT * FROM {old}"
    spark.sql(text)
    assert versions(new) == [0]
    check_policy(new, policy)
    copied = {LIKE: (), CLONE: EXAMPLE, CLONE_V1: EXAMPLE[:2], CTAS: EXAMPLE}[statement]
    assert rows(spark, new) == copied
    if of is None and statement != CTAS:  # what the policy requires is new to the copied files
        check_works(spark, new, policy)
    assert versions(old) == [0, 1, 2]


def check_works(spark: SparkSession, table: Table, policy: str | None) -> None:
    """Check that rows have ids where the policy requires them, and that writers are tagged."""
    before = rows(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    spark.sql(f"UPDATE {table} SET v = 'U' WHERE id = 1")
    last = max(versions(table))
    assert tags(table, last).get("interlock.policy") == policy
    updated = tuple((i, "U" if i == 1 else v) for i, v in (*before, (5, "e")))
    assert rows(spark, table) == updated
    if policy is not None:
        query = f"SELECT _metadata.row_id, _metadata.row_commit_version FROM {table}"
        found = spark.sql(query).collect()
        assert len({row["row_id"] for row in found}) == len(updated)
        assert all(row["row_commit_version"] is not None for row in found)


def test_a_clone_of_a_version_before_the_policy_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    old = make_table(spark, tmp_path / "old", policy=None)
    spark.sql(f"ALTER TABLE {old} SET TBLPROPERTIES ('interlock.policy' = '{POLICY}')")
    new = Table(tmp_path / "new")
    spark.sql(f"CREATE TABLE {new} SHALLOW CLONE {old} VERSION AS OF 2")
    check_policy(new, None)
    assert rows(spark, new) == EXAMPLE


def test_a_clone_over_an_empty_table_keeps_its_policy(spark: SparkSession, tmp_path: Path) -> None:
    source = make_table(spark, tmp_path / "source", policy=None)
    table = make_table(spark, tmp_path / "table", policy=POLICY, statements=())
    spark.sql(f"CREATE OR REPLACE TABLE {table} SHALLOW CLONE {source}")
    assert versions(table) == [0, 1]
    check_policy(table, POLICY)
    check_works(spark, table, POLICY)


class TestRestore:
    def test_to_a_version_before_the_policy_keeps_it(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = '{POLICY}')")
        spark.sql(f"INSERT OVERWRITE {table} VALUES (9, 'z')")
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 2")
        assert operations(table, since=6) == ["WRITE", "RESTORE"]
        check_policy(table, POLICY)
        assert rows(spark, table) == deltalake_rows(table) == EXAMPLE
        check_works(spark, table, POLICY)  # rows that come back have ids too

    def test_to_a_version_under_a_policy_that_was_unset_since(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=POLICY)
        spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
        check_policy(table, None)

    def test_a_table_without_a_policy_is_restored_as_with_stock(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
        check_policy(table, None)
        assert latest(table).properties == {}
        assert rows(spark, table) == EXAMPLE[:2]

    @pytest.mark.variant_cases("*OPTIMIZE {t}", "*transactional*")
    @pytest.mark.parametrize(
        ("policy", "earlier"),
        [
            (POLICY, "INSERT INTO {t} VALUES (4, 'd')"),
            pytest.param(POLICY, "OPTIMIZE {t}", marks=pytest.mark.soak),
            (OTHER, "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"),
        ],
    )
    def test_it_runs_again_after_a_concurrent_commit(
        self, spark: SparkSession, table_path: Path, policy: str, earlier: str
    ) -> None:
        table = make_table(spark, table_path, policy=policy)
        with log_of(spark, RERUN) as told:
            won, restored = sql_race(spark, table, earlier, "RESTORE TABLE {t} TO VERSION AS OF 1")
        assert (won.error, restored.error) == (None, None)
        assert "RESTORE" in str(told)
        assert "lost against version 3 and runs again (run 2 of at most 5)" in str(told)
        assert latest_version(table) == 4
        inserted = ((4, "d"),) if earlier.startswith("INSERT") else ()
        assert rows(spark, table, version=3) == EXAMPLE + inserted
        assert rows(spark, table) == deltalake_rows(table) == EXAMPLE[:2]

    def test_in_a_micro_batch_it_fails(self, spark: SparkSession, table_path: Path) -> None:
        """A stream has its own recovery."""
        table = make_table(spark, table_path, policy=POLICY)

        def restore(session: SparkSession) -> None:
            with in_a_micro_batch(session):
                session.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")

        insert = sql_job(f"INSERT INTO {table} VALUES (4, 'd')")
        won, lost = race(spark, insert, python_job("RESTORE", restore))
        assert (won.ok, lost.held) == (True, True)
        check_write_conflict(lost.error, "RESTORE", POLICY, read_version=2)
        assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (4, "d"))

    def test_all_commits_wait_for_its_second_run(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        """A table to which somebody always commits: its second run succeeds."""
        table, other = make_table(spark, table_path, policy="row_level"), spark.newSession()
        is_done = Event()

        def insert() -> int:
            for number in itertools.count():
                if is_done.is_set():
                    return number
                other.sql(f"INSERT INTO {table} VALUES ({10 + number}, 'i')")
            raise AssertionError

        with log_of(spark, RERUN) as told, ThreadPoolExecutor(1) as beside:
            inserts = beside.submit(insert)
            try:
                while latest_version(table) < 4:
                    assert not inserts.done()
                spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
            finally:
                is_done.set()
        assert str(told).count("runs again") == 1
        made = operations(table).index("RESTORE")
        assert rows(spark, table, version=made) == EXAMPLE[:2]
        assert len(rows(spark, table)) == 2 + len(operations(table)) - made - 1
        assert inserts.result() == len(operations(table)) - 4


def test_a_clone_fails_after_any_concurrent_commit(spark: SparkSession, tmp_path: Path) -> None:
    source = make_table(spark, tmp_path / "source", policy=None)
    table = make_table(spark, tmp_path / "table", policy=POLICY, statements=())
    clone = f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE {source}"
    won, lost = sql_race(spark, table, "INSERT INTO {t} VALUES (4, 'd')", clone)
    assert (won.ok, lost.held, lost.version) == (True, True, None)
    check_write_conflict(lost.error, "CLONE", POLICY, read_version=0)
    assert rows(spark, table) == deltalake_rows(table) == ((4, "d"),)
    assert rows(spark, source) == deltalake_rows(source) == EXAMPLE


def check_write_conflict(
    error: Exception | None, operation: str, policy: str, *, read_version: int
) -> None:
    assert isinstance(error, ConcurrentWriteError)
    assert error.condition == "INTERLOCK_CONCURRENT_WRITE"
    assert error.sqlstate == "2D521"
    assert (error.policy, error.operation) == (policy, operation)
    assert (error.read_version, error.winner_version) == (read_version, read_version + 1)
