"""A dynamic INSERT OVERWRITE of more than 10,000 partitions is one atomic commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from interlock._races import race
from pyspark.sql import SparkSession

from tests.kit.support import Table, latest_version, make_table, rows, sql_job, tags, versions

pytestmark = pytest.mark.variant

PARTITIONS = 10_001


def overwrite(table: Table, value: str) -> str:
    return (
        f"INSERT OVERWRITE {table} PARTITION (p) "
        f"SELECT 0 AS id, '{value}' AS v, CAST(id AS INT) AS p FROM range({PARTITIONS})"
    )


@pytest.mark.soak
def test_p13_dynamic_overwrite_of_10001_partitions(spark: SparkSession, table_path: Path) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    table = make_table(
        spark,
        table_path,
        columns="(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
        statements=("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', -1)",),
    )
    inserts = f"INSERT INTO {table} VALUES (3, 'c', {PARTITIONS - 1}), (4, 'd', -1)"
    jobs = (sql_job(inserts), sql_job(overwrite(table, "x")))
    earlier, later = race(spark, *jobs, latest_version=lambda: latest_version(table))

    assert earlier.ok
    assert later.error is None
    assert versions(table) == [0, 1, 2, 3]
    expected = [(0, "x", p) for p in range(PARTITIONS)] + [(2, "b", -1), (4, "d", -1)]
    assert rows(spark, table) == tuple(sorted(expected, key=repr))
    assert rows(spark, table, version=1) == ((1, "a", 1), (2, "b", -1))
    assert len(json.dumps(tags(table, 3))) < 500  # never one entry per partition
