"""Batches with a number (`txnAppId`, `txnVersion`) that two drivers write at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import ConcurrentTransactionError
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

from tests.kit.support import (
    Job,
    Table,
    confs,
    deltalake_rows,
    make_table,
    python_job,
    race,
    rows,
    sql_race,
    unknown_files,
    versions,
)

MERGE = (
    "MERGE INTO {t} t USING (VALUES (1, 'n'), (9, 'n') AS v (id, v)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v) WHEN NOT MATCHED THEN INSERT *"
)
STATEMENTS: dict[str, tuple[str, Rows]] = {
    "INSERT": ("INSERT INTO {t} VALUES (9, 'n')", ((1, "a"), (2, "b"), (3, "c"), (9, "n"))),
    "UPDATE": (
        "UPDATE {t} SET v = concat(v, 'n') WHERE id = 1",
        ((1, "an"), (2, "b"), (3, "c")),
    ),
    "DELETE": ("DELETE FROM {t} WHERE id = 1", ((2, "b"), (3, "c"))),
    "MERGE": (MERGE, ((1, "an"), (2, "b"), (3, "c"), (9, "n"))),
}
FIRST = {
    "spark.databricks.delta.write.txnAppId": "a",
    "spark.databricks.delta.write.txnVersion": "1",
}


@pytest.mark.variant_cases(
    but=["INSERT-row_level", "UPDATE-serializable", "DELETE-maxcompute_delta", "MERGE-row_level"]
)
@pytest.mark.parametrize("policy", ["row_level", "serializable", "maxcompute_delta"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_second_driver_succeeds_and_does_nothing(
    spark: SparkSession, table_path: Path, policy: str, statement: str
) -> None:
    table = make_table(spark, table_path, policy=policy)
    sql, after = STATEMENTS[statement]
    before = versions(table)
    with confs(spark, FIRST):
        first, second = sql_race(spark, table, sql, sql)
    assert (first.error, second.error) == (None, None)
    assert versions(table) == [*before, before[-1] + 1]
    assert rows(spark, table) == after
    assert rows(spark, table, version=before[-1]) == ((1, "a"), (2, "b"), (3, "c"))
    assert unknown_files(table) == []
    if policy == "serializable":
        assert deltalake_rows(table) == after


def append(number: int, table: Table, value: str) -> Job:
    """A batch of one new row, as `foreachBatch` writes it."""

    def write(spark: SparkSession) -> None:
        batch = spark.sql(f"SELECT 9 AS id, '{value}' AS v").write.format("delta").mode("append")
        batch.option("txnAppId", "a").option("txnVersion", number).save(str(table.path))

    return python_job(f"batch {number}", write)


@pytest.mark.parametrize(
    ("earlier", "later", "is_done"), [(1, 1, True), (2, 1, True), (1, 2, False)]
)
def test_a_later_batch_is_not_done(
    spark: SparkSession, table_path: Path, earlier: int, later: int, is_done: bool
) -> None:
    """As in Delta, a job that has written a batch has written all earlier ones."""
    table = make_table(spark, table_path, policy="row_level")
    first, second = race(spark, append(earlier, table, "e"), append(later, table, "l"))
    assert first.ok
    assert second.ok if is_done else isinstance(second.error, ConcurrentTransactionError)
    assert rows(spark, table)[3:] == ((9, "e"),)
    assert unknown_files(table) == []
    append(later, table, "l").run(spark)
    assert rows(spark, table)[3:] == ((9, "e"),) if is_done else ((9, "e"), (9, "l"))
