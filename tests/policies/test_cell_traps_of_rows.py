"""Traps 7, 15 and 16 of the documents' cells: what becomes of single rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from interlock.lab.example import Tables
from pyspark.sql import SparkSession

from tests.kit.support import commit, latest_version, make_table, row_tracking, sql_race
from tests.kit.traps import DELETE, INSERT, MAJOR, MINOR, UPDATE, check_history, example


@pytest.mark.variant_cases("copies")
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "copies"])
def test_trap_07_incremental_queries_show_each_change_once_and_no_compaction(
    spark: SparkSession, tables: Tables, vectors: str
) -> None:
    """D9, D14, D18 and D20 on one table, so that each compaction meets the files of the others."""
    table = example(tables, enableDeletionVectors=vectors, enableChangeDataFeed="true")
    for earlier, later in [(INSERT, MINOR), (UPDATE, MINOR), (MINOR, DELETE)]:
        assert [end.error for end in sql_race(spark, table, earlier, later)] == [None, None]
    spark.sql(f"INSERT INTO {table} VALUES (11, 'k')")
    assert [end.error for end in sql_race(spark, table, MINOR, MAJOR)] == [None, None]
    assert latest_version(table) == 11
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    feed = reader.option("startingVersion", 3).load(str(table.path))
    found = feed.select("_commit_version", "_change_type", "id", "v").collect()
    assert sorted(map(tuple, found)) == [
        (3, "insert", 10, "i"),
        (5, "update_postimage", 1, "U"),
        (5, "update_preimage", 1, "a"),
        (8, "delete", 2, "b"),
        (9, "insert", 11, "k"),
    ]
    newer = {2: [1, 10, 11], 3: [1, 11], 5: [11], 9: []}
    for version, ids in newer.items():
        since = f"SELECT id FROM {table} WHERE _metadata.row_commit_version > {version}"
        assert sorted(row[0] for row in spark.sql(since).collect()) == ids


SEVERAL_INPUTS = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1), (2, 'b', 1), (7, 'g', 1),"
    " (4, 'd', 2), (8, 'h', 2)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'c', 1), (9, 'i', 1), (5, 'e', 2)",
    "DELETE FROM {t} WHERE id IN (7, 9)",
)
COPY_ON_WRITE = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
UPDATE_SEVERAL = "UPDATE {t} SET v = 'U' WHERE id IN (2, 3, 4)"


JOBS = {
    "D14": (UPDATE_SEVERAL, MINOR),
    "D18": (MINOR, UPDATE_SEVERAL),
    "D23": (MAJOR, UPDATE_SEVERAL),
}
WAYS = ["-".join(way) for way in product(JOBS, ("vectors", "copies"), ("plain", "partitioned"))]
QUICK = ["D14-vectors-plain", "D14-copies-partitioned", "D18-vectors-partitioned"]
QUICK += ["D18-copies-plain", "D23-vectors-plain", "D23-copies-partitioned"]


@pytest.mark.variant_cases(but=["D18-vectors-partitioned"])
@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[] if way in QUICK else [pytest.mark.soak]) for way in WAYS],
)
def test_trap_15_deletion_vectors_and_copies_and_several_inputs_that_carry_vectors(
    spark: SparkSession, table_path: Path, way: str
) -> None:
    cell, dml, partitions = way.split("-")
    earlier, later = JOBS[cell]
    table = make_table(
        spark,
        table_path,
        columns="(id INT, v STRING, p INT) USING delta"
        + (" PARTITIONED BY (p)" if partitions == "partitioned" else ""),
        properties={"delta.enableDeletionVectors": "true"},
        statements=(*SEVERAL_INPUTS, *([COPY_ON_WRITE] if dml == "copies" else [])),
    )
    read = latest_version(table)
    ends = sql_race(spark, table, earlier, later)
    assert [end.error for end in ends] == [None, None]
    before = ((1, "a", 1), (2, "b", 1), (3, "c", 1), (4, "d", 2), (5, "e", 2), (8, "h", 2))
    after = tuple((i, "U" if i in (2, 3, 4) else v, p) for i, v, p in before)
    between = after if later == MINOR else before
    check_history(spark, table, {read: before, read + 1: between, read + 2: after})


@pytest.mark.variant_cases("D14-copies", "D23-vectors")
@pytest.mark.parametrize(
    ("earlier", "later", "vectors"),
    [
        pytest.param(UPDATE, MINOR, "true", id="D14-vectors", marks=pytest.mark.soak),
        pytest.param(UPDATE, MINOR, "false", id="D14-copies"),
        pytest.param(MAJOR, UPDATE, "true", id="D23-vectors"),
        pytest.param(MINOR, UPDATE, "false", id="D18-copies", marks=pytest.mark.soak),
    ],
)
def test_trap_16_row_ids_and_commit_versions_outlive_compaction(
    spark: SparkSession, tables: Tables, earlier: str, later: str, vectors: str
) -> None:
    table = example(tables, enableDeletionVectors=vectors)
    before = row_tracking(spark, table)
    ends = sql_race(spark, table, earlier, later)
    assert [end.error for end in ends] == [None, None]
    updated = 3 if earlier == UPDATE else 4
    assert row_tracking(spark, table) == {**before, 1: (before[1][0], updated)}
    if later == UPDATE:  # the compacted file keeps what it got
        (compacted,) = (action["add"] for action in commit(table, 3) if "add" in action)
        adds = [action["add"] for action in commit(table, 4) if "add" in action]
        (again,) = (add for add in adds if add["path"] == compacted["path"])
        for key in ("baseRowId", "defaultRowCommitVersion"):
            assert again[key] == compacted[key]
