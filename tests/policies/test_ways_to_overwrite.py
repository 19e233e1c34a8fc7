"""Ways to write that the documents have no cell for, each after an INSERT into its partition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interlock.errors import ConflictError
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from tests.kit.support import (
    Table,
    deltalake_rows,
    ids_in,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
)

COLUMNS = "(id INT, p INT) USING delta PARTITIONED BY (p)"
FIRST = ("INSERT INTO {t} VALUES (1, 1), (2, 2)",)
WINNERS = {1: "INSERT INTO {t} VALUES (10, 1)", 2: "INSERT INTO {t} VALUES (10, 2)"}
DYNAMIC = "partitionOverwriteMode"


def writer(df: DataFrame, **options: str) -> DataFrameWriter:
    return df.write.format("delta").mode("overwrite").options(**options)


def dynamic(df: DataFrame, table: Table) -> None:
    df.writeTo(str(table)).overwritePartitions()


def dynamic_by_option(df: DataFrame, table: Table) -> None:
    writer(df, **{DYNAMIC: "dynamic"}).save(str(table.path))


def insert_into(df: DataFrame, table: Table) -> None:
    df.write.mode("append").insertInto(str(table))


def merge_schema(df: DataFrame, table: Table) -> None:
    options = {DYNAMIC: "dynamic", "mergeSchema": "true"}
    writer(df.selectExpr("*", "'n' AS new"), **options).save(str(table.path))


Way = Callable[[DataFrame, Table], None]


@pytest.mark.parametrize(
    ("way", "rule", "left"),
    [
        (dynamic, None, [2, 5]),
        pytest.param(dynamic_by_option, None, [2, 5], marks=pytest.mark.soak),
        (insert_into, "D7", [1, 2, 10]),
        (merge_schema, None, [2, 5]),
    ],
)
def test_after_an_insert_into_its_partition(
    spark: SparkSession, table_path: Path, way: Way, rule: str | None, left: list[int]
) -> None:
    table, error = write_after_insert(spark, table_path, way, 1)
    assert (error.rule if isinstance(error, ConflictError) else error) == rule
    assert ids_in(rows(spark, table)) == left
    assert ids_in(deltalake_rows(table)) == left


def write_after_insert(
    spark: SparkSession, path: Path, way: Way, partition: int
) -> tuple[Table, Exception | None]:
    table = make_table(spark, path, columns=COLUMNS, statements=FIRST)
    df = spark.createDataFrame([(5, 1)], "id INT, p INT")
    later = python_job(way.__name__, lambda _: way(df, table))
    first, second = race(spark, sql_job(WINNERS[partition].format(t=table)), later)
    assert first.error is None
    assert second.held
    return table, second.error
