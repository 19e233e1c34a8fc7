"""COMPACT and MERGE SMALLFILES as statements: forms, scopes, results, thresholds, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interlock.errors import InterlockError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.kit.spark_version import since_4_1
from tests.kit.support import (
    Table,
    commit,
    commit_info,
    confs,
    deltalake_rows,
    live_files,
    make_table,
    rows,
    tags,
    versions,
)

PARTITIONED = "(id INT, d DATE, s STRING) USING delta PARTITIONED BY (d, s)"
SIX_FILES = (
    "INSERT INTO {t} VALUES (1, DATE'2026-01-01', 'x')",
    "INSERT INTO {t} VALUES (2, DATE'2026-01-01', 'x')",
    "INSERT INTO {t} VALUES (3, DATE'2026-01-01', 'a/b: %c'), (4, NULL, NULL)",
    "INSERT INTO {t} VALUES (5, DATE'2026-01-01', 'a/b: %c'), (6, NULL, '')",
)


def run(spark: SparkSession, statement: str, table: Table | str) -> Row:
    found = spark.sql(statement.format(t=table)).collect()
    assert len(found) == 1
    return found[0]


@pytest.mark.variant_cases("alter*", "ALTER TABLE IDENTIFIER*")
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("ALTER TABLE {t} COMPACT MINOR", "COMPACT MINOR"),
        ("alter table {t} compact major;", "COMPACT MAJOR"),
        ("ALTER TABLE {t} MERGE SMALLFILES", "MERGE SMALLFILES"),
        (
            "/* COMPACT */ ALTER -- TABLE\n TABLE {t} /* x */ Compact -- MAJOR\n Minor ; ;",
            "COMPACT MINOR",
        ),
        ("ALTER TABLE IDENTIFIER('{t}') COMPACT MAJOR", "COMPACT MAJOR"),
    ],
)
def test_each_form_commits_one_version(
    spark: SparkSession, example: Table, statement: str, name: str
) -> None:
    expected = rows(spark, example)
    row = run(spark, statement, example)
    operation_class = "COMPACT_MAJOR" if name == "COMPACT MAJOR" else "COMPACT_MINOR"
    assert (row["version"], row["class"]) == (3, operation_class)
    assert (row["files_in"], row["files_out"], row["rows"], row["rows_purged"]) == (2, 1, 3, 0)
    assert row["winners"] == []
    assert versions(example) == [0, 1, 2, 3]
    actions = commit(example, 3)
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    assert not any(file["dataChange"] for file in added + removed)
    assert row["bytes_in"] == sum(file["size"] for file in removed)
    assert row["bytes_out"] == sum(file["size"] for file in added)
    info = commit_info(example, 3)
    assert info["operation"] == name
    assert tags(example, 3)["interlock.class"] == operation_class
    assert tags(example, 3)["delta.rowTracking.preserved"] == "true"
    metrics = info["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("2", "1")
    assert metrics["numRemovedBytes"] == str(row["bytes_in"])
    assert rows(spark, example) == expected


def test_an_append_only_table_can_be_compacted(spark: SparkSession, table_path: Path) -> None:
    """OPTIMIZE may compact it as well: no row goes away."""
    table = make_table(spark, table_path, properties={"delta.appendOnly": "true"})
    expected = rows(spark, table)
    assert run(spark, "ALTER TABLE {t} COMPACT MAJOR", table)["files_in"] == 2
    assert rows(spark, table) == deltalake_rows(table) == expected


@pytest.mark.parametrize("name", ["plain", "default.compact", "`minor`", "Merge"])
def test_tables_by_name(spark: SparkSession, example: Table, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{example.path}'")
    assert run(spark, "ALTER TABLE {t} COMPACT MINOR", name)["version"] == 3


def test_nothing_to_compact_makes_no_version(spark: SparkSession, example: Table) -> None:
    assert run(spark, "ALTER TABLE {t} COMPACT MINOR", example)["version"] == 3
    row = run(spark, "ALTER TABLE {t} MERGE SMALLFILES", example)
    assert row.asDict() == {
        "version": None,
        "class": "COMPACT_MINOR",
        **dict.fromkeys(("files_in", "files_out", "bytes_in", "bytes_out"), 0),
        **dict.fromkeys(("rows", "rows_purged"), 0),
        "winners": [],
    }
    assert versions(example) == [0, 1, 2, 3]


def test_every_compaction_of_a_transactional_table_is_one_class(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy="maxcompute_transactional")
    row = run(spark, "ALTER TABLE {t} COMPACT MAJOR", table)
    assert (row["version"], row["class"]) == (3, "MERGE_SMALLFILES")
    assert tags(table, 3)["interlock.class"] == "MERGE_SMALLFILES"


def test_explain_compacts_nothing(spark: SparkSession, example: Table) -> None:
    for mode in ("", "EXTENDED"):
        plan = spark.sql(f"EXPLAIN {mode} ALTER TABLE {example} COMPACT MINOR").collect()[0][0]
        assert "CompactCommand" in plan
    assert versions(example) == [0, 1, 2]


@since_4_1
def test_parameters_are_bound(spark: SparkSession, table_path: Path) -> None:
    assert spark.sql("SELECT :a + 1 AS b", args={"a": 1}).collect() == [Row(b=2)]
    assert spark.sql("SELECT ? AS b", args=["it's"]).collect() == [Row(b="it's")]
    assert spark.sql("EXECUTE IMMEDIATE 'SELECT ? AS b' USING 2").collect() == [Row(b=2)]
    table = make_table(spark, table_path, columns=PARTITIONED, statements=SIX_FILES)
    statement = f"ALTER TABLE {table} PARTITION (s = :s) COMPACT MAJOR"
    assert spark.sql(statement, args={"s": "x"}).collect()[0]["files_in"] == 2
    assert live_partitions(table) == {"x": 1, "a/b: %c": 2, None: 2}


def live_partitions(table: Table) -> dict[str | None, int]:
    """Count the live files by their value of `s`."""
    live = live_files(table)
    added = {
        action["add"]["path"]: action["add"]["partitionValues"]["s"]
        for version in versions(table)
        for action in commit(table, version)
        if "add" in action
    }
    values = [added[path] for path in live]
    return {value: values.count(value) for value in values}


@pytest.mark.parametrize(
    ("partition", "left"),
    [
        ("", {"x": 1, "a/b: %c": 1, None: 1}),
        ("PARTITION (d = '2026-01-01', S = 'x')", {"x": 1, "a/b: %c": 2, None: 2}),
        ("PARTITION (d = DATE'2026-01-01')", {"x": 1, "a/b: %c": 1, None: 2}),
        pytest.param(
            "PARTITION (s = 'a/b: %c')", {"x": 2, "a/b: %c": 1, None: 2}, marks=pytest.mark.soak
        ),
        ("PARTITION (d = null)", {"x": 2, "a/b: %c": 2, None: 1}),
        pytest.param(
            "PARTITION (s = 'nothing')", {"x": 2, "a/b: %c": 2, None: 2}, marks=pytest.mark.soak
        ),
    ],
)
def test_scopes(
    spark: SparkSession, table_path: Path, partition: str, left: dict[str | None, int]
) -> None:
    table = make_table(spark, table_path, columns=PARTITIONED, statements=SIX_FILES)
    expected = rows(spark, table)
    row = run(spark, f"ALTER TABLE {{t}} {partition} COMPACT MINOR", table)
    assert live_partitions(table) == left
    assert row["files_out"] == 6 - sum(left.values())
    assert (row["version"] is None) == (row["files_out"] == 0)
    assert rows(spark, table) == expected
    if row["files_out"] == 3:  # one job and one version for all
        assert versions(table) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("ALTER TABLE {t} COMPACT", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} COMPACT SMALL", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} COMPACT 'major'", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} COMPACT MINOR MAJOR", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} MERGE SMALL FILES", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} PARTITION (s) COMPACT MINOR", "INTERLOCK_COMPACT_SYNTAX"),
        ("ALTER TABLE {t} PARTITION (id = 1) COMPACT MINOR", "INTERLOCK_NOT_A_PARTITION_COLUMN"),
        ("ALTER TABLE {t} PARTITION (d = 'no') COMPACT MINOR", "CAST_INVALID_INPUT"),
        ("ALTER TABLE missing COMPACT MINOR", "TABLE_OR_VIEW_NOT_FOUND"),
        ("ALTER TABLE a_view COMPACT MINOR", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("ALTER TABLE pq COMPACT MINOR", "DELTA_TABLE_ONLY_OPERATION"),
        ("ALTER TABLE {path}@v1` COMPACT MINOR", "INTERLOCK_NOT_A_WHOLE_TABLE"),
        ("ALTER TABLE {path}/d=2026-01-01` COMPACT MINOR", "INTERLOCK_NOT_A_WHOLE_TABLE"),
        ("ALTER TABLE {t} /*+ hint */ COMPACT MINOR", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE {t} COMPACTED MINOR", "PARSE_SYNTAX_ERROR"),
        ("ALTER TABLE {t} ADD COLUMN COMPACT MINOR x", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_refusals(spark: SparkSession, table_path: Path, statement: str, condition: str) -> None:
    table = make_table(spark, table_path, columns=PARTITIONED, statements=SIX_FILES)
    spark.range(1).createOrReplaceTempView("a_view")
    spark.sql("CREATE TABLE IF NOT EXISTS pq (id INT) USING parquet")
    with pytest.raises(PySparkException) as caught:
        spark.sql(statement.format(t=table, path=str(table)[:-1]))
    assert caught.value.getCondition() == condition
    assert versions(table) == [0, 1, 2, 3, 4]


def test_a_table_without_a_policy_is_refused(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy=None)
    with pytest.raises(InterlockError, match="OPTIMIZE compacts tables without") as caught:
        spark.sql(f"ALTER TABLE {table} COMPACT MAJOR")
    assert caught.value.getCondition() == "INTERLOCK_POLICY_REQUIRED"
    assert versions(table) == [0, 1, 2]


class TestThresholds:
    """Thresholds come from table properties, and from confs where a table sets none."""

    @pytest.mark.parametrize(
        ("properties", "values", "files_out"),
        [
            ({}, {}, 1),
            ({"smallFileSize": "10"}, {}, None),
            ({"smallFileSize": "1kb"}, {"smallFileSize": "10"}, 1),
            pytest.param({}, {"smallFileSize": "10b"}, None, marks=pytest.mark.soak),
            pytest.param({"minFiles": "4"}, {}, None, marks=pytest.mark.soak),
            ({"minFiles": "3"}, {"minFiles": "9"}, 1),
            ({}, {"minFiles": "5"}, None),
            ({"targetFileSize": "1500"}, {}, 1),
            pytest.param({}, {"targetFileSize": "100"}, None, marks=pytest.mark.soak),
        ],
    )
    def test_of_minor(
        self,
        spark: SparkSession,
        tables: Any,
        table_path: Path,
        properties: dict[str, str],
        values: dict[str, str],
        files_out: int | None,
    ) -> None:
        three = tuple(f"INSERT INTO {{t}} VALUES ({n}, 'a')" for n in range(3))
        table = make_table(spark, table_path, statements=three)
        if properties:
            listed = ", ".join(
                f"'interlock.compaction.{key}' = '{value}'" for key, value in properties.items()
            )
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})")
        prefix = "spark.interlock.compaction."
        with confs(spark, {prefix + key: value for key, value in values.items()}):
            row = run(spark, "ALTER TABLE {t} COMPACT MINOR", table)
        assert row["files_out"] == (files_out or 0)
        assert (row["version"] is None) == (files_out is None)
        if properties.get("targetFileSize"):
            assert row["files_in"] == 2  # the third file did not fit

    @pytest.mark.parametrize(
        ("word", "value"),
        [
            ("smallFileSize", "tiny"),
            ("minFiles", "2.5"),
            ("minFiles", "0"),
            ("targetFileSize", "-1"),
        ],
    )
    def test_nonsense_is_refused(
        self, spark: SparkSession, example: Table, word: str, value: str
    ) -> None:
        key = f"interlock.compaction.{word}"
        with pytest.raises(InterlockError, match=f"{key} cannot be '{value}'") as caught:
            spark.sql(f"ALTER TABLE {example} SET TBLPROPERTIES ('{key}' = '{value}')")
        assert caught.value.getCondition() == "INTERLOCK_INVALID_PROPERTY"
        with (
            confs(spark, {f"spark.{key}": value}),
            pytest.raises(InterlockError, match=f"spark.{key} cannot be"),
        ):
            spark.sql(f"ALTER TABLE {example} COMPACT MINOR")
        assert versions(example) == [0, 1, 2]
