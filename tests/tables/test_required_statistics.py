"""A table with a policy has row tracking, which needs the number of rows of each new file.

A session that collects no statistics is refused before it writes a file or a deletion vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interlock.errors import UsageError
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    confs,
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    versions,
)

SETTING = "spark.databricks.delta.stats.collect"
MERGE = (
    "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 4) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'm')"
)


@pytest.fixture
def without(spark: SparkSession) -> Iterator[None]:
    with confs(spark, {SETTING: "false"}):
        yield


def files(table: Table) -> set[str]:
    return {str(file) for file in table.path.rglob("*") if "_delta_log" not in file.parts}


@pytest.mark.variant_cases("*-false")
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (4, 'd')",
        "INSERT OVERWRITE {t} VALUES (4, 'd')",
        "UPDATE {t} SET v = 'u' WHERE id = 1",
        MERGE,
    ],
    ids=["insert", "overwrite", "update", "merge"],
)
def test_writes_are_refused_before_they_write(
    spark: SparkSession, table_path: Path, statement: str, vectors: str
) -> None:
    table = make_table(spark, table_path, properties={"delta.enableDeletionVectors": vectors})
    before = files(table)
    with confs(spark, {SETTING: "false"}), pytest.raises(UsageError) as caught:
        spark.sql(statement.format(t=table))
    assert caught.value.condition == "INTERLOCK_STATISTICS_REQUIRED"
    assert f"it has {SETTING} = false" in str(caught.value)
    assert f"SET {SETTING} = true" in str(caught.value)
    assert files(table) == before
    assert latest_version(table) == 2
    spark.sql(statement.format(t=table))
    assert latest_version(table) == 3


def test_a_new_table_is_not_left_half_made(
    spark: SparkSession, table_path: Path, without: None
) -> None:
    with pytest.raises(UsageError, match="INTERLOCK_STATISTICS_REQUIRED"):
        spark.sql(
            f"CREATE TABLE {Table(table_path)} USING delta "
            "TBLPROPERTIES ('interlock.policy' = 'row_level') AS SELECT 1 AS id"
        )
    assert not list(table_path.rglob("*.parquet"))


def test_what_writes_no_new_rows_goes_on(
    spark: SparkSession, table_path: Path, without: None
) -> None:
    """A DELETE by vector keeps the statistics of its file; a compaction collects its own."""
    with confs(spark, {SETTING: "true"}):
        table = make_table(spark, table_path, properties={"delta.enableDeletionVectors": "true"})
    spark.conf.set(SETTING, "false")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"ALTER TABLE {table} COMPACT MAJOR")
    spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"TRUNCATE TABLE {table}")
    assert rows(spark, table) == deltalake_rows(table) == ()


def test_a_table_without_a_policy_needs_none(
    spark: SparkSession, table_path: Path, without: None
) -> None:
    table = make_table(spark, table_path, policy=None)
    spark.sql(MERGE.format(t=table))
    assert versions(table) == [0, 1, 2, 3]
    assert rows(spark, table) == ((1, "m"), (2, "b"), (3, "c"), (4, "m"))
