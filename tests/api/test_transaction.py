"""`interlock.transaction` on classic PySpark and on Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import interlock
import pytest
from interlock.errors import ConflictError, UsageError
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.sessions import connect_session
from tests.kit.support import (
    Table,
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    tags,
    unknown_files,
)

START = ((1, "a"), (2, "b"))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    insert = "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"
    return make_table(spark, tmp_path / "t", policy="row_level", statements=(insert,))


def test_it_commits_at_the_end(spark: SparkSession, table: Table) -> None:
    before = spark.table(str(table))
    with interlock.transaction(spark) as tx:
        more = spark.sql("SELECT 3 AS id, 'c' AS v")
        more.write.format("delta").mode("append").save(table.location)
        spark.sql(f"UPDATE {table} SET v = 'x' WHERE id IN (1, 3)")
        assert rows(spark, table) == ((1, "x"), (2, "b"), (3, "x"))
        assert before.count() == 3
        assert latest_version(table) == 1
        assert tx.versions == {}
    assert tx.versions == {str(table): 2}
    assert tags(table, 2)["interlock.block"] == tx.id
    assert rows(spark, table) == deltalake_rows(table) == ((1, "x"), (2, "b"), (3, "x"))
    assert rows(spark, table, version=1) == START
    assert unknown_files(table) == []
    check_log(table)


def test_an_exception_rolls_back(spark: SparkSession, table: Table) -> None:
    def fail() -> None:
        with interlock.transaction(spark):
            spark.sql(f"DELETE FROM {table}")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert rows(spark, table) == START
    assert latest_version(table) == 1
    with pytest.raises(UsageError, match="INTERLOCK_NO_BLOCK"):
        spark.sql("COMMIT").collect()


@pytest.fixture
def other(mode: str, spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A second session."""
    if mode == "classic":
        yield spark.newSession()
    else:
        with connect_session(request.getfixturevalue("server")) as session:
            yield session


def test_it_loses_as_a_whole(spark: SparkSession, table: Table, other: SparkSession) -> None:
    def lose() -> None:
        with interlock.transaction(spark):
            spark.sql(f"INSERT INTO {table} VALUES (3, 'c')")
            spark.sql(f"UPDATE {table} SET v = 'x' WHERE id = 1")
            other.sql(f"UPDATE {table} SET v = 'y' WHERE id = 1").collect()

    with pytest.raises(ConflictError, match="statement 2 of the block that loses, UPDATE") as lost:
        lose()
    assert lost.value.winner_version == 2
    assert rows(spark, table) == deltalake_rows(table) == ((1, "y"), (2, "b"))
    assert unknown_files(table) == []


def test_a_script(spark: SparkSession, table: Table) -> None:
    script = (
        f"BEGIN ATOMIC DELETE FROM {table} WHERE id = 1; SELECT count(*) AS n FROM {table}; END"
    )
    found = spark.sql(script)
    assert [tuple(row) for row in found.collect()] == [(1,)]
    assert rows(spark, table) == ((2, "b"),)
    assert latest_version(table) == 2


def test_a_caught_error_rolls_back(spark: SparkSession, table: Table) -> None:
    def fail() -> None:
        with interlock.transaction(spark):
            spark.sql(f"DELETE FROM {table} WHERE id = 1")
            with suppress(UsageError):
                spark.sql(f"OPTIMIZE {table}").collect()

    with pytest.raises(UsageError, match=r"(?s)INTERLOCK_BLOCK_FAILED.*OPTIMIZE") as raised:
        fail()
    assert raised.value.getSqlState() == "25P02"
    assert rows(spark, table) == START
    assert latest_version(table) == 1
    assert unknown_files(table) == []
    with pytest.raises(UsageError, match="INTERLOCK_NO_BLOCK"):
        spark.sql("COMMIT").collect()
