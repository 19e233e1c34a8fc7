"""Statements that lose and are run again: `spark.interlock.rerun.maxRuns`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import ConcurrentDeleteReadError, ConflictError, MetadataChangedError
from interlock.lab.model import Rows, in_order
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from tests.kit.commit_phases import observed
from tests.kit.support import (
    Table,
    confs,
    deltalake_rows,
    last_of,
    latest_version,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
)

COLUMNS = "(id INT, v STRING) USING delta"
INSERT = "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"
X1 = "UPDATE {t} SET v = 'X' WHERE id = 1"
RERUN = "io.interlock.spark.statements.Rerun"
REPLACE = "CREATE OR REPLACE TABLE {{t}} USING delta AS SELECT {0} AS id, 'r' AS v"


@pytest.fixture
def twice(spark: SparkSession) -> Iterator[None]:
    with confs(spark, {"spark.interlock.rerun.maxRuns": "2"}):
        yield


def table_of(spark: SparkSession, path: Path, policy: str = "row_level", **more: str) -> Table:
    return make_table(
        spark, path, policy=policy, columns=COLUMNS, statements=(INSERT,), properties=more
    )


AGAIN: dict[str, tuple[str, str, str, Rows]] = {
    "UPDATE": ("row_level", X1, "UPDATE {t} SET v = concat(v, 'Y') WHERE id = 1",
               ((1, "XY"), (2, "b"))),
    "DELETE": ("row_level", X1, "DELETE FROM {t} WHERE id = 1", ((2, "b"),)),
    "MERGE": ("row_level", X1, "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id "
              "WHEN MATCHED THEN UPDATE SET v = concat(t.v, 'M')", ((1, "XM"), (2, "b"))),
    "MERGE, materialized": (
        "row_level", X1, "MERGE INTO {t} t USING (SELECT col1 AS id FROM VALUES (1)) s ON "
        "t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(t.v, 'M')", ((1, "XM"), (2, "b"))),
    "MERGE, by a matrix": (
        "maxcompute_delta", "INSERT INTO {t} VALUES (9, 'i')", "MERGE INTO {t} t USING "
        "(SELECT col1 AS id FROM VALUES (1)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = concat(t.v, 'M')", ((1, "aM"), (2, "b"), (9, "i"))),
    "INSERT, which reads": (
        "row_level", X1, "INSERT INTO {t} SELECT 10 + id, v FROM {t} WHERE v = 'X' OR id = 1",
        in_order(((1, "X"), (2, "b"), (11, "X")))),
    "INSERT, of VALUES": ("maxcompute_delta", "INSERT INTO {t} VALUES (3, 'c')",
                          "INSERT INTO {t} VALUES (4, 'd')",
                          ((1, "a"), (2, "b"), (3, "c"), (4, "d"))),
    "INSERT OVERWRITE": (
        "serializable", "INSERT INTO {t} VALUES (3, 'c')",
        "INSERT OVERWRITE {t} SELECT id + 10, v FROM {t}", ((11, "a"), (12, "b"), (13, "c"))),
    "REPLACE TABLE AS SELECT": (
        "serializable", "INSERT INTO {t} VALUES (3, 'c')", "CREATE OR REPLACE TABLE {t} "
        "USING delta AS SELECT id + 10 AS id, v FROM {t}", ((11, "a"), (12, "b"), (13, "c"))),
}  # fmt: skip


@pytest.mark.variant_cases(but=["UPDATE", "MERGE, materialized", "INSERT, which reads"])
@pytest.mark.parametrize("name", AGAIN)
def test_a_second_run_reads_what_the_winner_wrote(
    spark: SparkSession, table_path: Path, twice: None, name: str
) -> None:
    policy, earlier, later, expected = AGAIN[name]
    table = table_of(spark, table_path, policy)
    with (
        log_of(spark, RERUN) as told,
        log_of(spark, "org.apache.spark.sql.delta.commands.MergeIntoCommand") as errors,
    ):
        first, second = sql_race(spark, table, earlier, later)
    assert (first.error, second.error) == (None, None)
    assert latest_version(table) == 3
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert str(told).count("\n") == 1
    assert "lost against version 2 and runs again (run 2 of at most 2)" in str(told)
    assert str(errors) == ""


@pytest.mark.parametrize("runs", [1, 2])
def test_two_jobs_replace_one_table(spark: SparkSession, table_path: Path, runs: int) -> None:
    table = table_of(spark, table_path)
    with confs(spark, {"spark.interlock.rerun.maxRuns": str(runs)}), log_of(spark, RERUN) as told:
        first, second = sql_race(spark, table, REPLACE.format(5), REPLACE.format(6))
    assert first.error is None
    assert latest_version(table) == 1 + runs
    assert rows(spark, table) == deltalake_rows(table) == ((4 + runs, "r"),)
    if runs == 2:
        assert second.error is None
        assert "lost against version 2 and runs again (run 2 of at most 2)" in str(told)
        return
    assert isinstance(second.error, MetadataChangedError)
    assert "CREATE OR REPLACE TABLE AS SELECT lost: version 2" in str(second.error)
    assert "Run the statement again" in str(second.error)


@pytest.mark.parametrize("create", ["CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"])
def test_two_jobs_make_one_table(
    spark: SparkSession, table_path: Path, twice: None, create: str
) -> None:
    """The second one finds the table of the first: it replaces it, or has nothing to do."""
    made = f"{create} twins USING delta LOCATION '{table_path}'"
    policy = "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    try:
        first, second = race(spark, *(f"{made} {policy} AS SELECT {n} AS id" for n in (5, 6)))
    finally:
        spark.sql("DROP TABLE IF EXISTS twins")
    assert (first.error, second.error) == (None, None)
    table, replaces = Table(table_path), "REPLACE" in create
    assert rows(spark, table) == deltalake_rows(table) == ((6 if replaces else 5,),)
    assert latest_version(table) == int(replaces)


@pytest.mark.parametrize("create", ["CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"])
def test_a_table_that_the_catalog_does_not_have_yet(
    spark: SparkSession, twice: None, create: str
) -> None:
    """A table has its entry in the catalog behind its first version; the second job begins amid."""
    made = f"{create} late_twins USING delta TBLPROPERTIES ('interlock.policy' = 'row_level')"
    session = spark.newSession()
    session.conf.set("spark.interlock.rerun.maxRuns", "2")
    second: list[Future[object]] = []
    listen: Any = ensure_callback_server_started
    listen(spark.sparkContext._gateway)
    try:
        with ThreadPoolExecutor(1) as thread:

            def at(phase: str, version: int) -> None:
                if (phase, version) == ("published", 0) and not second:
                    second.append(thread.submit(session.sql, f"{made} AS SELECT 6 AS id"))
                    wait(second, timeout=3)

            with observed(spark._jvm, at):
                spark.sql(f"{made} AS SELECT 5 AS id")
            second[0].result(60)
        found = [tuple(row) for row in spark.table("late_twins").collect()]
        versions = spark.sql("DESCRIBE HISTORY late_twins").count()
    finally:
        spark.sql("DROP TABLE IF EXISTS late_twins")
    assert (found, versions) == (([(6,)], 2) if "REPLACE" in create else ([(5,)], 1))


@pytest.mark.parametrize("winner", ["COMMENT ON TABLE {t} IS 'c'", REPLACE.format(1)])
def test_a_replacement_that_no_policy_judges(
    spark: SparkSession, table_path: Path, twice: None, winner: str
) -> None:
    """Under a MaxCompute policy Delta's own check fails it."""
    table = table_of(spark, table_path, policy="maxcompute_delta")
    first, second = sql_race(spark, table, winner, REPLACE.format(2))
    assert (first.error, second.error) == (None, None)
    assert rows(spark, table) == deltalake_rows(table) == ((2, "r"),)
    assert latest_version(table) == 3


def test_a_replacement_that_reads_its_table_keeps_a_new_column(
    spark: SparkSession, table_path: Path, twice: None
) -> None:
    """SELECT * was planned without the column, so a second run would drop its values."""
    table = table_of(spark, table_path, "serializable")
    winners = ("ALTER TABLE {t} ADD COLUMN w INT", "UPDATE {t} SET w = 5")
    replace = "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {t}"
    assert isinstance(last_of(spark, table, winners, replace), ConflictError)
    assert rows(spark, table) == ((1, "a", 5), (2, "b", 5))


def test_a_save_that_replaces_some_rows_does_not_bring_a_column_back(
    spark: SparkSession, table_path: Path, twice: None
) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = table_of(spark, table_path, **mapped)
    spark.sql(f"CREATE TABLE part_saved USING delta LOCATION '{table_path}'")

    def save(session: SparkSession) -> None:
        new = session.sql("SELECT 1 AS id, 'N' AS v").write.format("delta").mode("overwrite")
        new.option("replaceWhere", "id = 1").option("mergeSchema", "true").saveAsTable("part_saved")

    rename = sql_job(f"ALTER TABLE {table} RENAME COLUMN v TO w")
    try:
        first, second = race(spark, rename, python_job("save", save))
    finally:
        spark.sql("DROP TABLE part_saved")
    assert first.error is None
    assert isinstance(second.error, MetadataChangedError)
    assert spark.table(str(table)).columns == ["id", "w"]
    assert rows(spark, table) == ((1, "a"), (2, "b"))


def test_dynamic_partition_overwrite(spark: SparkSession, table_path: Path, twice: None) -> None:
    columns = COLUMNS + " PARTITIONED BY (v)"
    table = make_table(
        spark, table_path, policy="serializable", columns=columns, statements=(INSERT,)
    )
    later = "INSERT OVERWRITE {t} SELECT id + 10, v FROM {t} WHERE v = 'a'"
    with confs(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        _, second = sql_race(spark, table, "INSERT INTO {t} VALUES (3, 'a')", later)
    assert second.error is None
    assert rows(spark, table) == deltalake_rows(table) == in_order(((2, "b"), (11, "a"), (13, "a")))


def test_dataframes(spark: SparkSession, table_path: Path, twice: None) -> None:
    table = table_of(spark, table_path, "maxcompute_delta")
    spark.range(3, 5).selectExpr("CAST(id AS INT) AS id", "'d' AS v").createOrReplaceTempView("new")
    writer = spark.table("new").write.format("delta").mode("append")
    jobs = (
        python_job("save", lambda session: writer.save(str(table.path))),
        python_job("writeTo", lambda session: session.table("new").writeTo(str(table)).append()),
    )
    for job in jobs:
        _, second = race(spark, sql_job(f"INSERT INTO {table} VALUES (9, 'i')"), job)
        assert second.error is None
    assert [row[0] for row in rows(spark, table)] == [1, 2, 3, 3, 4, 4, 9, 9]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            X1,
            "MERGE INTO {t} t USING (SELECT 1 AS id, uuid() AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v",
        ),
        (X1, "INSERT INTO {t} SELECT id, uuid() FROM {t} WHERE id = 1"),
        ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)", "UPDATE {t} SET v = 'Y' WHERE id = 1"),
    ],
)
def test_what_is_not_run_again(
    spark: SparkSession, table_path: Path, twice: None, earlier: str, later: str
) -> None:
    table = table_of(spark, table_path)
    _, second = sql_race(spark, table, earlier, later)
    assert isinstance(second.error, ConflictError)
    assert isinstance(second.error, MetadataChangedError) == ("ALTER" in earlier)
    assert latest_version(table) == 2


@pytest.mark.variant_cases("DELETE*")
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize(
    "later", ["UPDATE {t} SET v = 'Y' WHERE id = 1", "DELETE FROM {t} WHERE id = 1"]
)
def test_not_after_a_new_column(
    spark: SparkSession, table_path: Path, twice: None, later: str, vectors: str
) -> None:
    """The statement was planned without the column: a second run would lose its values."""
    table = table_of(spark, table_path, **{"delta.enableDeletionVectors": vectors})
    winners = (X1, "ALTER TABLE {t} ADD COLUMN w INT", "UPDATE {t} SET w = 5")
    assert isinstance(last_of(spark, table, winners, later), ConcurrentDeleteReadError)
    assert rows(spark, table) == ((1, "X", 5), (2, "b", 5))


def test_a_table_says_it_for_its_writers(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path, **{"interlock.rerun.maxRuns": "3"})
    _, second = sql_race(spark, table, X1, "UPDATE {t} SET v = 'Y' WHERE id = 1")
    assert second.error is None
    with confs(spark, {"spark.interlock.rerun.maxRuns": "3"}):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.rerun.maxRuns' = '1')")
        _, second = sql_race(spark, table, X1, "UPDATE {t} SET v = 'Y' WHERE id = 1")
    assert isinstance(second.error, ConcurrentDeleteReadError)
    with pytest.raises(Exception, match="INTERLOCK_INVALID_PROPERTY"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.rerun.maxRuns' = '0')")
