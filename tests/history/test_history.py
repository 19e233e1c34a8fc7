"""SHOW HISTORY: what it says of each version, and which versions are time versions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from interlock.errors import InterlockError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.kit.foreign import commit_by_hand
from tests.kit.spark_version import since_4_1
from tests.kit.support import (
    Table,
    commit,
    commit_file,
    commit_info,
    make_table,
    sql_race,
    versions,
)

PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
# What is done to a table, and what must be said of it: class, operation, rows in and out.
LIFE: tuple[tuple[str, tuple[str | None, str, int | None, int | None]], ...] = (
    (
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
        ("APPEND", "INSERT INTO", 3, 0),
    ),
    ("INSERT INTO {t} VALUES (4, 'd', 2), (5, 'e', NULL)", ("APPEND", "INSERT INTO", 2, 0)),
    ("UPDATE {t} SET v = v WHERE id = 1", ("MUTATE", "UPDATE", 1, 1)),
    ("ALTER TABLE {t} COMPACT MAJOR", ("COMPACT_MAJOR", "COMPACT MAJOR", 0, 0)),
    ("DELETE FROM {t} WHERE id = 3", ("MUTATE", "DELETE", 0, 1)),
    ("RESTORE TABLE {t} TO VERSION AS OF 4", ("OVERWRITE", "RESTORE", 1, 0)),
    ("RESTORE TABLE {t} TO VERSION AS OF 3", ("OVERWRITE", "RESTORE", 0, 0)),  # undoes a compaction
    (
        "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (9, 'z')",
        ("OVERWRITE", "INSERT OVERWRITE", 1, 2),
    ),
    (
        "MERGE INTO {t} AS t USING (SELECT 4 AS id UNION ALL SELECT 6) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'm'"
        " WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'm', 2)",
        ("MUTATE", "MERGE", 2, 1),
    ),
    ("TRUNCATE TABLE {t} PARTITION (p = 2)", ("OVERWRITE", "TRUNCATE", 0, 3)),
    ("INSERT OVERWRITE {t} VALUES (7, 'q', 3)", ("OVERWRITE", "INSERT OVERWRITE", 1, 2)),
    ("TRUNCATE TABLE {t}", ("OVERWRITE", "TRUNCATE", 0, 1)),
    ("TRUNCATE TABLE {t}", ("OVERWRITE", "TRUNCATE", 0, 0)),
    # Back over a compaction, so it brings rows in other files than they were in.
    ("RESTORE TABLE {t} TO VERSION AS OF 3", ("OVERWRITE", "RESTORE", None, None)),
)


def history(spark: SparkSession, table: Table | str, rest: str = "") -> list[Row]:
    return spark.sql(f"SHOW HISTORY FOR TABLE {table} {rest}").collect()


def numbers(found: list[Row]) -> list[int]:
    return [row["version"] for row in found]


def time_versions(found: list[Row]) -> list[int]:
    return [row["version"] for row in found if row["time_version"] is not None]


def rewrite_log(table: Table, version: int, actions: list[dict[str, Any]]) -> None:
    """Replace a commit, as another writer would have written it."""
    path = commit_file(table, version)
    path.write_text("\n".join(json.dumps(action) for action in actions), encoding="utf-8")
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.fixture(scope="module", params=["vectors", pytest.param("copies", marks=pytest.mark.soak)])
def life(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Table:
    """A table that had everything done to it, with deletion vectors or without."""
    return make_table(
        spark,
        tmp_path_factory.mktemp("life") / "table",
        columns=PARTITIONED,
        properties={"delta.enableDeletionVectors": str(request.param == "vectors").lower()},
        statements=tuple(statement for statement, _ in LIFE),
    )


@pytest.mark.variant_cases("copies")
def test_every_version_is_told(spark: SparkSession, life: Table) -> None:
    found = history(spark, life)
    assert numbers(found) == versions(life)[::-1]
    expected = [("OVERWRITE", "CREATE TABLE", 0, 0)] + [expected for _, expected in LIFE]
    if commit_info(life, 3)["operationMetrics"].get("numDeletionVectorsAdded") == "0":
        expected[6] = ("OVERWRITE", "RESTORE", None, None)  # the DELETE has copied rows
    told = [(r["class"], r["operation"], r["rows_in"], r["rows_out"]) for r in found[::-1]]
    assert told == expected
    assert time_versions(found)[::-1] == [v for v, t in enumerate(told) if t[2:] != (0, 0)]
    for row in found:
        info = commit_info(life, row["version"])
        assert row["txn_id"] == info["txnId"]
        assert row["read_version"] == info.get("readVersion")
        assert row["timestamp"].timestamp() == info["inCommitTimestamp"] / 1000
        assert row["time_version"] in (None, row["timestamp"])
        assert (row["policy"], row["winners"]) == ("maxcompute_delta", [])
        user = spark.sparkContext.sparkUser()
        assert (row["rules"], row["foreign"], row["user"]) == ([], False, user)


@pytest.mark.variant_cases("copies")
def test_partitions(spark: SparkSession, life: Table) -> None:
    one = history(spark, life, "PARTITION (p = 1)")
    assert [(r["version"], r["rows_in"], r["rows_out"]) for r in one] == [
        (14, None, None),
        (11, 0, 1),
        (8, 1, 2),
        (7, 0, 0),
        (4, 0, 0),
        (3, 1, 1),
        (1, 2, 0),
    ]
    assert time_versions(one) == [14, 11, 8, 3, 1]
    null = history(spark, life, "PARTITION (p = NULL) LIMIT 2")[1:]
    assert [(r["version"], r["rows_out"], r["files_removed"]) for r in null] == [(11, 1, 1)]


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A partitioned table without a policy, at version 2."""
    return make_table(
        spark,
        tmp_path_factory.mktemp("plain") / "table",
        policy=None,
        columns=PARTITIONED,
        statements=(
            "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'a', 1), (3, 'a', 2), (4, 'a', 2)",
            "UPDATE {t} SET v = 'b' WHERE id IN (1, 3)",
        ),
    )


def test_copied_rows_are_neither_in_nor_out(spark: SparkSession, plain: Table) -> None:
    """The number of copied rows per partition is not known."""
    assert commit_info(plain, 2)["operationMetrics"]["numCopiedRows"] == "2"
    update = history(spark, plain, "LIMIT 1")[0]
    assert (update["rows_in"], update["rows_out"], update["files_added"]) == (2, 2, 2)
    part = history(spark, plain, "PARTITION (p = 1) LIMIT 1")[0]
    assert (part["rows_in"], part["rows_out"], part["files_added"]) == (None, None, 1)
    assert part["time_version"] == update["time_version"] is not None


@pytest.mark.parametrize(("vectors", "files"), [("true", (1, 0)), ("false", (2, 1))])
def test_rows_that_a_replacement_leaves(
    spark: SparkSession, table_path: Path, vectors: str, files: tuple[int, int]
) -> None:
    table = make_table(
        spark,
        table_path,
        policy=None,
        properties={"delta.enableDeletionVectors": vectors},
        statements=(
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO {t} REPLACE WHERE id > 2 VALUES (4, 'd')",
        ),
    )
    row = history(spark, table, "LIMIT 1")[0]
    assert (row["operation"], row["rows_in"], row["rows_out"]) == ("INSERT OVERWRITE", 1, 1)
    assert (row["files_added"], row["files_removed"]) == files


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("show history for table {t};", [2, 1, 0]),
        ("SHOW /* FOR */ HISTORY FOR TABLE {t} -- all\n LIMIT 2 ; ;", [2, 1]),
        ("SHOW HISTORY FOR TABLE IDENTIFIER('{t}') LIMIT 1", [2]),
        ("SHOW HISTORY FOR TABLE {t} PARTITION (P = '1')", [2, 1]),
        ("SHOW HISTORY FOR TABLE {t} PARTITION (p = 7)", []),
        ("SHOW HISTORY FOR TABLE {t} LIMIT 0", []),
    ],
)
def test_forms(spark: SparkSession, plain: Table, statement: str, expected: list[int]) -> None:
    found = spark.sql(statement.format(t=plain)).collect()
    assert numbers(found) == expected
    assert {row["foreign"] for row in found} <= {None}


@since_4_1
def test_parameters_types_and_names(spark: SparkSession, plain: Table) -> None:
    by_name = f"SHOW HISTORY FOR TABLE {plain} PARTITION (p = :p) LIMIT :n"
    assert numbers(spark.sql(by_name, args={"p": 1, "n": 1}).collect()) == [2]
    by_place = f"/* 😀 ? */ SHOW HISTORY FOR TABLE {plain} PARTITION (p = ?) LIMIT ?"
    assert numbers(spark.sql(by_place, args=["1", 5]).collect()) == [2, 1]
    assert spark.sql(by_place, args=[1, 1]).schema.simpleString() == (
        "struct<version:bigint,time_version:timestamp,timestamp:timestamp,class:string,"
        "policy:string,operation:string,operation_parameters:map<string,string>,"
        "winners:array<bigint>,rules:array<string>,verdicts:array<string>,foreign:boolean,rows_in:bigint,rows_out:bigint,"
        "files_added:bigint,files_removed:bigint,user:string,txn_id:string,read_version:bigint,"
        "block:string>"
    )
    plan = spark.sql(f"EXPLAIN EXTENDED SHOW HISTORY FOR TABLE {plain}").collect()[0][0]
    assert "ShowHistoryCommand" in plan
    spark.sql(f"CREATE TABLE `limit` USING delta LOCATION '{plain.path}'")
    assert numbers(history(spark, "limit")) == numbers(history(spark, "default.limit")) == [2, 1, 0]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("SHOW HISTORY", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR {t}", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("EXPLAIN SHOW HISTORY FOR TABLE", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} LIMIT x", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} LIMIT -1", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} LIMIT :n", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} PARTITION (p) LIMIT 1", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} WHERE version > 1", "INTERLOCK_SHOW_HISTORY_SYNTAX"),
        ("SHOW HISTORY FOR TABLE {t} PARTITION (id = 1)", "INTERLOCK_NOT_A_PARTITION_COLUMN"),
        ("SHOW HISTORY FOR TABLE missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SHOW HISTORY FOR TABLE delta.`/missing`", "DELTA_MISSING_DELTA_TABLE"),
        ("SHOW HISTORY FOR TABLE a_view", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("SHOW HISTORY FOR TABLE pq", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("SHOW HISTORY FOR TABLE {path}@v1`", "INTERLOCK_NOT_A_WHOLE_TABLE"),
        ("SHOW HISTORIES", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_refusals(spark: SparkSession, plain: Table, statement: str, condition: str) -> None:
    spark.range(1).createOrReplaceTempView("a_view")
    spark.sql("CREATE TABLE IF NOT EXISTS pq (id INT) USING parquet")
    with pytest.raises(PySparkException) as caught:
        spark.sql(statement.format(t=plain, path=str(plain)[:-1]))
    assert caught.value.getCondition() == condition


def test_what_a_commit_passed(spark: SparkSession, example: Table) -> None:
    insert, compact = (
        f"INSERT INTO {example} VALUES (4, 'd')",
        f"ALTER TABLE {example} COMPACT MINOR",
    )
    assert [end.error for end in sql_race(spark, example, insert, compact)] == [None, None]
    newest = history(spark, example, "LIMIT 2")
    assert [(row["class"], row["winners"], row["rules"], row["verdicts"]) for row in newest] == [
        ("COMPACT_MINOR", [3], ["D9"], ["AS_IS"]),
        ("APPEND", [], [], []),
    ]
    appended = newest[1]["timestamp"]
    assert newest[1]["time_version"] == appended
    spark.sql(f"RESTORE TABLE {example} TO TIMESTAMP AS OF '{appended:%Y-%m-%d %H:%M:%S.%f}'")
    restore = history(spark, example, "LIMIT 1")[0]
    assert (restore["operation"], restore["version"]) == ("RESTORE", 5)
    assert (restore["time_version"], restore["rows_in"]) == (None, 0)  # it undid the compaction


def test_foreign_commits(spark: SparkSession, table_path: Path) -> None:
    """Only commits made under a policy can be foreign, not those from before it."""
    table = make_table(spark, table_path, policy=None, statements=())
    data = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
    write_deltalake(table.path, data, mode="append")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = 'serializable')")
    first = versions(table)[-1]
    spark.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    foreign = commit(table, first + 1)
    for action in foreign:  # as a writer without row tracking or tags would have written it
        action.get("commitInfo", {}).pop("tags", None)
        action.get("add", {}).pop("stats", None)
    rewrite_log(table, first + 1, foreign)
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    found = {row["version"]: row for row in history(spark, table)}
    assert [found[v]["foreign"] for v in (0, 1)] == [None, None]
    assert (found[first]["foreign"], found[first + 1]["foreign"]) == (False, True)
    assert found[first + 3]["foreign"] is None
    backfill = next(r for r in found.values() if r["operation"] == "ROW TRACKING BACKFILL")
    assert (backfill["files_added"], backfill["rows_in"], backfill["time_version"]) == (0, 0, None)
    assert found[first + 1]["rows_in"] is None  # the file has no statistics
    assert found[first + 1]["time_version"] is not None
    assert (found[1]["rows_in"], found[1]["class"], found[1]["winners"]) == (2, None, None)


def test_a_foreign_commit_with_tags_that_tell_nothing(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path)
    nonsense = {
        "interlock.class": "APPEND",
        "interlock.winners": "one,2,,9223372036854775808",
        "interlock.rules": "D6,D7",
    }
    commit_by_hand(table, "WRITE", tags=nonsense)
    (found,) = spark.sql(f"SHOW HISTORY FOR TABLE {table} LIMIT 1").collect()
    assert (found["winners"], found["rules"], found["verdicts"]) == ([2], ["D7"], [None])


def test_versions_whose_commits_are_gone(spark: SparkSession, table_path: Path) -> None:
    """Versions whose commits are gone are left out, and what only they recorded is NULL."""
    table = make_table(
        spark,
        table_path,
        policy=None,
        properties={"delta.checkpointInterval": "3"},
        statements=(
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'c')",
            "INSERT OVERWRITE {t} VALUES (4, 'd')",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "DELETE FROM {t} WHERE id = 3",
        ),
    )
    for file in (table.path / "_delta_log").iterdir():
        if file.name.removeprefix(".")[:20] in (f"{version:020}" for version in range(3)):
            file.unlink()
    found = [(r["version"], r["rows_in"], r["rows_out"]) for r in history(spark, table)]
    assert found == [(5, 0, 1), (4, 3, 1), (3, 1, None)]
    assert time_versions(history(spark, table)) == [5, 4, 3]


@pytest.mark.variant
def test_timestamps_without_in_commit_timestamps(spark: SparkSession, plain: Table) -> None:
    """Modification times, made to increase as time travel makes them."""
    log = plain.path / "_delta_log"
    for version, seconds in ((0, 1_000_000_100), (1, 1_000_000_050), (2, 1_000_000_200)):
        os.utime(log / f"{version:020}.json", (seconds, seconds))
    stamps = [row["timestamp"].timestamp() for row in history(spark, plain)]
    assert stamps == [1_000_000_200, 1_000_000_100.001, 1_000_000_100]


def test_an_error_says_how_it_is_written(spark: SparkSession) -> None:
    with pytest.raises(InterlockError, match="'SHOW HISTORY of t' is no") as caught:
        spark.sql("EXPLAIN SHOW HISTORY of t")
    assert "SHOW HISTORY FOR TABLE t [PARTITION (column = value, ...)]" in str(caught.value)
    assert caught.value.getSqlState() == "42601"
