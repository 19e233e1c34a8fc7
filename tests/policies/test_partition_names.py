"""Which column a name in a predicate means: nested fields, dots, aliases.

A predicate on `s.p` is one on data, also where there is a partition column `p`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interlock.errors import ConflictError, InterlockError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tests.kit.support import (
    Table,
    deltalake_rows,
    ids_in,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    tags,
)

NESTED = "(id INT, s STRUCT<p: INT>, p INT) USING delta PARTITIONED BY (p)"
FIRST = ("INSERT INTO {t} VALUES (1, named_struct('p', 1), 1), (2, named_struct('p', 7), 2)",)
WINNER = "INSERT INTO {t} VALUES (10, named_struct('p', 7), 1)"
NEW = "SELECT 5 AS id, named_struct('p', 1) AS s, 1 AS p"


def option(df: DataFrame, table: Table, condition: str) -> None:
    writer = df.write.format("delta").mode("overwrite").option("replaceWhere", condition)
    writer.save(str(table.path))


def aliased(df: DataFrame, table: Table, condition: str) -> None:
    writer = df.write.format("delta").mode("overwrite").option("targetAlias", "x")
    writer.option("replaceWhere", condition).save(str(table.path))


def v2(df: DataFrame, table: Table, condition: str) -> None:
    column = condition.partition(" = ")[0]
    df.writeTo(str(table)).overwrite(col(column) == 1)


def sql(df: DataFrame, table: Table, condition: str) -> None:
    df.sparkSession.sql(f"INSERT INTO {table} REPLACE WHERE {condition} {NEW}")


Overwrite = Callable[[DataFrame, Table, str], None]


def overwrite_after_insert(
    spark: SparkSession, table: Table, overwrite: Overwrite, condition: str
) -> Exception | None:
    df = spark.sql(NEW)
    later = python_job(condition, lambda _: overwrite(df, table, condition))
    first, second = race(spark, sql_job(WINNER.format(t=table)), later)
    assert first.error is None
    assert second.held
    return second.error


@pytest.mark.variant_cases("option*", "aliased*")
@pytest.mark.parametrize(
    ("overwrite", "condition"),
    [
        (sql, "s.p = 1"),
        (option, "s.p = 1"),
        pytest.param(option, "`s`.`P` = 1", marks=pytest.mark.soak),
        (aliased, "x.s.p = 1"),
        (v2, "s.p = 1"),
        pytest.param(sql, "p = 1 AND s.p = 1", marks=pytest.mark.soak),
    ],
)
def test_a_field_named_like_a_partition_column_is_data(
    spark: SparkSession, table_path: Path, overwrite: Overwrite, condition: str
) -> None:
    table = make_table(spark, table_path, columns=NESTED, statements=FIRST)
    error = overwrite_after_insert(spark, table, overwrite, condition)
    assert isinstance(error, ConflictError)
    assert (error.rule, error.operation_class, error.scope) == ("D8", "MUTATE", "p=1")
    assert latest_version(table) == 2
    assert ids_in(rows(spark, table)) == [1, 2, 10]
    assert ids_in(deltalake_rows(table)) == [1, 2, 10]


@pytest.mark.variant_cases("option*", "aliased*")
@pytest.mark.parametrize(
    ("overwrite", "condition"),
    [
        (sql, "p = 1"),
        (option, "`P` = 1"),
        (aliased, "x.p = 1"),
        pytest.param(v2, "p = 1", marks=pytest.mark.soak),
    ],
)
def test_the_partition_column_is_replaced_as_it_is_then(
    spark: SparkSession, table_path: Path, overwrite: Overwrite, condition: str
) -> None:
    table = make_table(spark, table_path, columns=NESTED, statements=FIRST)
    assert overwrite_after_insert(spark, table, overwrite, condition) is None
    assert tags(table, 3)["interlock.rules"] == "D6"
    assert ids_in(rows(spark, table)) == [2, 5]
    assert ids_in(deltalake_rows(table)) == [2, 5]


@pytest.mark.variant_cases(but=["row_level"])
@pytest.mark.parametrize("policy", ["serializable", "write_serializable", "row_level"])
def test_policies_that_look_at_rows_keep_the_row_of_another_field(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    table = make_table(spark, table_path, policy=policy, columns=NESTED, statements=FIRST)
    assert overwrite_after_insert(spark, table, sql, "s.p = 1") is None
    assert ids_in(rows(spark, table)) == [2, 5, 10]


def test_a_policy_without_changes_of_rows_refuses_the_statement(
    spark: SparkSession, table_path: Path
) -> None:
    policy = "maxcompute_standard"
    table = make_table(spark, table_path, policy=policy, columns=NESTED, statements=FIRST)
    with pytest.raises(InterlockError, match="INTERLOCK_OPERATION_NOT_SUPPORTED"):
        sql(spark.sql(NEW), table, "s.p = 1")
    sql(spark.sql(NEW), table, "p = 1")
    assert ids_in(rows(spark, table)) == [2, 5]


@pytest.mark.variant_cases("UPDATE*")
@pytest.mark.parametrize(
    ("statement", "passes"),
    [
        ("DELETE FROM {t} WHERE s.p = 1", False),
        ("DELETE FROM {t} WHERE s.p = 1 AND p = 2", True),
        ("UPDATE {t} SET id = 0 WHERE s.p = 7 AND p = 2", True),
        (
            "MERGE INTO {t} t USING (SELECT 2 AS p) n ON t.s.p = n.p AND t.p = 2 "
            "WHEN MATCHED THEN DELETE",
            True,
        ),
    ],
)
def test_statements_that_change_rows(
    spark: SparkSession, table_path: Path, statement: str, passes: bool
) -> None:
    table = make_table(spark, table_path, columns=NESTED, statements=FIRST)
    _, later = sql_race(spark, table, WINNER, statement)
    assert later.held
    assert isinstance(later.error, ConflictError) != passes


DOTTED = "(id INT, `a.b` INT) USING delta PARTITIONED BY (`a.b`)"


@pytest.mark.variant_cases("*-none")
@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("TRUNCATE TABLE {t} PARTITION (`a.b` = 1)", [2]),
        ("INSERT INTO {t} REPLACE WHERE `a.b` = 1 VALUES (5, 1)", [2, 5]),
    ],
)
def test_a_partition_column_with_a_dot_in_its_name(
    spark: SparkSession, table_path: Path, statement: str, left: list[int], mapping: str
) -> None:
    table = make_table(
        spark,
        table_path,
        columns=DOTTED,
        properties={"delta.columnMapping.mode": mapping},
        statements=("INSERT INTO {t} VALUES (1, 1), (2, 2)",),
    )
    _, later = sql_race(spark, table, "INSERT INTO {t} VALUES (10, 1)", statement)
    assert later.error is None
    assert tags(table, 3)["interlock.scope"] == "a.b=1"
    assert ids_in(rows(spark, table)) == left
    assert ids_in(deltalake_rows(table)) == left


def test_a_compaction_of_a_partition_with_a_dot_in_its_name(
    spark: SparkSession, table_path: Path
) -> None:
    inserts = ("INSERT INTO {t} VALUES (1, 1), (2, 2)", "INSERT INTO {t} VALUES (3, 1), (4, 2)")
    table = make_table(spark, table_path, columns=DOTTED, statements=inserts)
    result = spark.sql(f"ALTER TABLE {table} PARTITION (`a.b` = 1) COMPACT MAJOR").collect()[0]
    history = spark.sql(f"SHOW HISTORY FOR TABLE {table} PARTITION (`a.b` = 1)").collect()
    assert (result["files_in"], result["files_out"]) == (2, 1)
    assert [row["version"] for row in history] == [3, 2, 1]
