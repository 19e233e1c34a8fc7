"""Overwrites of some rows at once: REPLACE WHERE, `replaceUsing`, `replaceOn`, of partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interlock.errors import ConflictError
from pyspark.sql import SparkSession

from tests.kit.support import (
    Job,
    Table,
    deltalake_rows,
    make_table,
    python_job,
    race,
    rows,
    versions,
)

Value = int | None
Write = Callable[[SparkSession, Table, Value, str], None]

START = ((1, "a"), (2, "b"), (3, "c"), (None, "n"))
LAYOUTS = {"one file": "", "clustered": "CLUSTER BY (k)", "partitioned": "PARTITIONED BY (k)"}


def frame(spark: SparkSession, key: Value, text: str) -> str:
    return f"SELECT {'NULL' if key is None else key} :: INT AS k, '{text}' AS v"


def replace_where(spark: SparkSession, table: Table, key: Value, text: str) -> None:
    selected = "k IS NULL" if key is None else f"k = {key}"
    spark.sql(f"INSERT INTO {table} REPLACE WHERE {selected} {frame(spark, key, text)}")


def by_option(name: str, value: str) -> Write:
    def write(spark: SparkSession, table: Table, key: Value, text: str) -> None:
        writer = spark.sql(frame(spark, key, text)).alias("s").write.format("delta")
        if name == "replaceOn":
            writer = writer.option("targetAlias", "t")
        writer.mode("overwrite").option(name, value).save(str(table.path))

    return write


def insert_overwrite(spark: SparkSession, table: Table, key: Value, text: str) -> None:
    value = "NULL" if key is None else key
    spark.sql(f"INSERT OVERWRITE {table} PARTITION (k = {value}) SELECT '{text}'")


FORMS: dict[str, Write] = {
    "REPLACE WHERE": replace_where,
    "replaceUsing": by_option("replaceUsing", "k"),
    "replaceOn": by_option("replaceOn", "t.k <=> s.k"),
    "INSERT OVERWRITE": insert_overwrite,
}
CASES = [
    *(("row_level", "replaceUsing", layout) for layout in LAYOUTS),
    ("row_level", "REPLACE WHERE", "one file"),
    ("row_level", "REPLACE WHERE", "clustered"),
    ("row_level", "replaceOn", "one file"),
    ("row_level", "INSERT OVERWRITE", "partitioned"),
    ("maxcompute_delta", "REPLACE WHERE", "partitioned"),
    ("maxcompute_delta", "INSERT OVERWRITE", "partitioned"),
]


@pytest.mark.variant_cases(
    but=[
        "row_level-replaceUsing-one file",
        "row_level-REPLACE WHERE-clustered",
        "maxcompute_delta-INSERT OVERWRITE-partitioned",
    ]
)
@pytest.mark.parametrize(("policy", "form", "layout"), CASES)
def test_two_at_once(
    spark: SparkSession, tmp_path: Path, policy: str, form: str, layout: str
) -> None:
    """Different keys both commit; of one key the table never has the rows of both."""

    def table_of(name: str) -> Table:
        return make_table(
            spark,
            tmp_path / name,
            policy=policy,
            columns=f"(k INT, v STRING) USING delta {LAYOUTS[layout]}",
            statements=("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (NULL, 'n')",),
        )

    def job(table: Table, key: Value, text: str) -> Job:
        return python_job(text, lambda session: FORMS[form](session, table, key, text))

    raced, serial = table_of("raced"), table_of("serial")
    for number, (one, other) in enumerate([(1, 2), (1, 1), (9, 9), (None, None)]):
        before = rows(spark, raced)
        texts = f"e{number}", f"l{number}"
        first, second = race(spark, job(raced, one, texts[0]), job(raced, other, texts[1]))
        assert first.error is None
        FORMS[form](spark, serial, one, texts[0])
        if one != other:
            assert second.error is None
        if second.error is None:
            FORMS[form](spark, serial, other, texts[1])
        else:
            assert isinstance(second.error, ConflictError)
        assert rows(spark, raced) == rows(spark, serial), (one, other)
        assert (
            rows(spark, raced, version=versions(raced)[-1 - (second.error is None) - 1]) == before
        )
    if policy == "maxcompute_delta" or layout == "partitioned":
        assert deltalake_rows(raced) == rows(spark, raced)
