"""The documents' own examples, by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interlock.errors import ConflictError, InterlockError
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from tests.kit.barrier import barrier
from tests.kit.support import (
    Job,
    JobResult,
    Table,
    all_files,
    deltalake_rows,
    live_files,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    versions,
)

PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"


def insert(table: Table, *values: str) -> Job:
    return sql_job(f"INSERT INTO {table} VALUES {', '.join(values)}")


class TestMultiInsert:
    """One statement into two tables is one transaction per table."""

    @pytest.fixture
    def tables(self, spark: SparkSession, tmp_path: Path) -> tuple[Table, Table]:
        spark.createDataFrame([(20, "j")], "id INT, v STRING").createOrReplaceTempView("s")
        return make_table(spark, tmp_path / "a"), make_table(spark, tmp_path / "b")

    def test_each_table_gets_a_version(
        self, spark: SparkSession, tables: tuple[Table, Table]
    ) -> None:
        a, b = tables
        spark.sql(f"FROM s INSERT INTO {a} SELECT id, v INSERT INTO {b} SELECT id, v")
        for table in tables:
            assert versions(table) == [0, 1, 2, 3]
            assert rows(spark, table) == ((1, "a"), (2, "b"), (20, "j"), (3, "c"))

    def test_one_loses_and_the_other_stays(
        self, spark: SparkSession, tables: tuple[Table, Table]
    ) -> None:
        a, b = tables
        with barrier() as at_b, ThreadPoolExecutor(1) as thread:
            spark.udf.register("wait_here", at_b.passing(20), IntegerType())
            statement = thread.submit(
                spark.sql,
                f"FROM s INSERT INTO {a} SELECT id, v INSERT INTO {b} SELECT wait_here(id), v",
            )
            at_b.await_arrival()
            spark.sql(f"INSERT INTO {b} VALUES (10, 'i')")
            at_b.open()
            with pytest.raises(ConflictError, match="APPEND fails after APPEND"):
                statement.result()
        assert rows(spark, a) == deltalake_rows(a) == ((1, "a"), (2, "b"), (20, "j"), (3, "c"))
        assert rows(spark, b) == deltalake_rows(b) == ((1, "a"), (10, "i"), (2, "b"), (3, "c"))
        assert [versions(table) for table in tables] == [[0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("snapshot", ["fresh", "known"])
class TestDropAgainstARunningInsert:
    """S2: a statement whose table is dropped meanwhile fails and leaves nothing.

    Delta computes a snapshot's state when something asks for it: where it is "known", the statement
    finds out about the missing table as late as possible.
    """

    def create(self, spark: SparkSession, path: Path, values: list[str]) -> None:
        spark.sql(
            f"CREATE TABLE going (id INT, v STRING) USING delta LOCATION '{path}' "
            "TBLPROPERTIES ('interlock.policy' = 'maxcompute_transactional')"
        )
        for value in values:
            spark.sql(f"INSERT INTO going VALUES {value}")

    @pytest.fixture(autouse=True)
    def going(self, spark: SparkSession, table_path: Path, snapshot: str) -> Iterator[None]:
        """Make a table at version 1 whose folder DROP does not touch."""
        self.create(spark, table_path, ["(1, 'a')"])
        if snapshot == "known":
            spark.sql("DESCRIBE DETAIL going").collect()
        yield
        spark.sql("DROP TABLE IF EXISTS going")

    def test_the_insert_fails_and_nothing_is_left(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        def drop(session: SparkSession) -> None:
            session.sql("DROP TABLE going")
            shutil.rmtree(table_path)

        lost = self.race_against_insert(spark, drop)
        check_table_gone(lost)
        assert "The table was dropped, or dropped and created anew, while" in str(lost.error)
        assert not spark.catalog.tableExists("going")
        assert not all_files(Table(table_path))

    @pytest.mark.variant_cases("3*")
    @pytest.mark.parametrize("new_versions", [2, pytest.param(3, marks=pytest.mark.soak)])
    def test_a_table_created_again_is_untouched(
        self, spark: SparkSession, table_path: Path, new_versions: int
    ) -> None:
        """The new table may or may not have the version that the INSERT wants to make."""
        values = [f"({n}, 'new')" for n in range(new_versions - 1)]

        def drop_and_create(session: SparkSession) -> None:
            session.sql("DROP TABLE going")
            shutil.rmtree(table_path)
            self.create(session, table_path, values)

        lost = self.race_against_insert(spark, drop_and_create)
        table = Table(table_path)
        assert versions(table) == list(range(new_versions))
        assert rows(spark, table) == tuple((n, "new") for n in range(new_versions - 1))
        check_table_gone(lost)
        assert {file.name for file in table_path.glob("*.parquet")} == live_files(table)

    def race_against_insert(
        self, spark: SparkSession, run: Callable[[SparkSession], None]
    ) -> JobResult:
        job = python_job("drop", run)
        dropped, lost = race(spark, job, sql_job("INSERT INTO going VALUES (2, 'b')"))
        assert dropped.error is None
        assert lost.held
        return lost


def test_a_renamed_table_is_named(spark: SparkSession) -> None:
    """A managed table moves to another folder; the job's rows go to neither table."""
    for name in ("going", "other"):
        spark.sql(
            f"CREATE TABLE {name} (id INT, v STRING) USING delta "
            "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        )
    rename, insert = "ALTER TABLE going RENAME TO gone", "INSERT INTO going VALUES (2, 'b')"
    renamed, lost = race(spark, sql_job(rename), sql_job(insert))
    assert renamed.error is None
    check_table_gone(lost)
    assert "The table was renamed to spark_catalog.default.gone while" in str(lost.error)
    assert rows(spark, "gone") == ()
    for name in ("gone", "other"):
        spark.sql(f"DROP TABLE {name}")


def check_table_gone(lost: JobResult) -> None:
    assert isinstance(lost.error, InterlockError)
    assert lost.error.getCondition() == "INTERLOCK_TABLE_GONE"
