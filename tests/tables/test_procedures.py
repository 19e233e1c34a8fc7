"""CALL interlock.<procedure>: arguments, what they return, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.kit.spark_version import SPARK, since_4_1
from tests.kit.support import Table, commit, live_files, make_table, versions

POLICY_COUNT = {"maxcompute_delta": 25, "maxcompute_transactional": 16}


@pytest.fixture(scope="module")
def t(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A partitioned table at version 4, also by the name of t: partition 1 is compacted."""
    table = make_table(
        spark,
        tmp_path_factory.mktemp("procedures") / "table",
        columns="(id INT, p STRING) USING delta PARTITIONED BY (p)",
        properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
        statements=(
            "INSERT INTO {t} VALUES (1, 'a/b'), (2, 'a/b'), (3, NULL)",
            "INSERT INTO {t} VALUES (4, 'a/b')",
            "ALTER TABLE {t} PARTITION (p = 'a/b') COMPACT MINOR",
            "DELETE FROM {t} WHERE id = 4",
        ),
    )
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table.path}'")
    return table


def call(spark: SparkSession, text: str) -> list[Row]:
    return spark.sql(f"CALL interlock.{text}").collect()


@since_4_1
def test_they_are_listed_and_described(spark: SparkSession) -> None:
    listed = {row["procedure_name"] for row in spark.sql("SHOW PROCEDURES IN interlock").collect()}
    assert listed == {
        "blocks",
        "claim",
        "claims",
        "compact",
        "conflicts",
        "explain_conflict",
        "files",
        "history",
        "policies",
        "release",
        "remove_policy",
        "set_policy",
        "versions",
    }
    told = spark.sql("DESCRIBE PROCEDURE interlock.compact").collect()
    text = "\n".join(row[0] for row in told)
    parameters = ("kind", "partition", "'minor', 'major' or") if SPARK >= (4, 2) else ()
    assert all(word in text for word in ("compact", *parameters))


def test_history_is_show_history(spark: SparkSession, t: Table) -> None:
    shown = spark.sql("SHOW HISTORY FOR TABLE t")
    called = spark.sql("CALL interlock.history('t')")
    assert called.schema == shown.schema
    assert called.collect() == shown.collect()
    for by_name in (
        "history(table => 't', limit => 2)",
        f"history('{t.path}', NULL, 1 + 1)",
        f"history(limit => 2, table => '{t}', partition => map('P', 'a/b'))",
    ):
        assert [row["version"] for row in call(spark, by_name)] == [4, 3]
    null = "history('default.t', partition => map('p', CAST(NULL AS STRING)))"
    assert [row["version"] for row in call(spark, null)] == [1]
    assert call(spark, "history('t', limit => 0)") == []


def test_versions(spark: SparkSession, t: Table) -> None:
    found = spark.sql("CALL interlock.versions(table => 't', limit => 3)")
    assert found.schema.simpleString() == (
        "struct<version:bigint,time_version:timestamp,timestamp:timestamp,operation:string>"
    )
    rows = found.collect()
    assert [(row["version"], row["operation"]) for row in rows] == [
        (4, "DELETE"),
        (3, "COMPACT MINOR"),
        (2, "INSERT INTO"),
    ]
    assert [row["time_version"] == row["timestamp"] for row in rows] == [True, False, True]


def test_files(spark: SparkSession, t: Table) -> None:
    found = spark.sql("CALL interlock.files('t')")
    assert found.schema.simpleString() == (
        "struct<path:string,partition:map<string,string>,size:bigint,rows:bigint,"
        "dead_rows:bigint,row_commit_version:bigint,compacted_from:array<string>>"
    )
    rows = {row["partition"]["p"]: row for row in found.collect()}
    assert {row["path"] for row in rows.values()} == live_files(t)
    compacted, untouched = rows["a/b"], rows[None]
    assert (compacted["rows"], compacted["dead_rows"], untouched["rows"]) == (2, 1, 1)
    assert (untouched["row_commit_version"], untouched["compacted_from"]) == (1, None)
    removed = [action["remove"]["path"] for action in commit(t, 3) if "remove" in action]
    assert sorted(compacted["compacted_from"]) == sorted(removed)
    assert len(removed) == 2
    for row in rows.values():
        assert row["size"] == next(t.path.rglob(Path(row["path"]).name)).stat().st_size
    only = call(spark, "files('t', map('p', 'a/b'))")
    assert [row["path"] for row in only] == [compacted["path"]]


def test_policies(spark: SparkSession) -> None:
    rows = call(spark, "policies()")
    for policy, count in POLICY_COUNT.items():
        assert len([row for row in rows if row["policy"] == policy]) == count
    cell = next(row for row in rows if (row["policy"], row["rule"]) == ("maxcompute_delta", "D9"))
    assert (cell["earlier"], cell["later"], cell["verdict"]) == ("APPEND", "COMPACT_MINOR", "AS_IS")
    assert "elta" in cell["source"]


def test_set_policy_is_an_alter_table(spark: SparkSession, table_path: Path) -> None:
    table = make_table(
        spark, table_path, policy=None, statements=("INSERT INTO {t} VALUES (1, 'a')",)
    )
    set_it = f"set_policy('{table.path}', 'maxcompute_delta')"
    assert call(spark, set_it) == [Row(policy="maxcompute_delta", previous=None)]
    again = f"set_policy(policy => 'serializable', table => '{table}')"
    assert call(spark, again) == [Row(policy="serializable", previous="maxcompute_delta")]
    with pytest.raises(PySparkException) as caught:
        call(spark, f"set_policy('{table}', 'it''s')")
    assert caught.value.getCondition() == "INTERLOCK_UNKNOWN_POLICY"
    assert call(spark, f"set_policy('{table}', NULL)") == [
        Row(policy=None, previous="serializable")
    ]
    properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert "interlock.policy" not in properties
    assert properties["delta.enableRowTracking"] == "true"  # what the policy required was set


def test_compact(spark: SparkSession, table_path: Path) -> None:
    table = make_table(
        spark,
        table_path,
        columns="(id INT, p STRING) USING delta PARTITIONED BY (p)",
        statements=(
            'INSERT INTO {t} VALUES (1, "it\'s"), (2, NULL)',
            'INSERT INTO {t} VALUES (3, "it\'s"), (4, NULL)',
        ),
    )
    one = spark.sql(f"CALL interlock.compact('{table}', partition => map('p', \"it's\"))")
    told = one.collect()
    assert [(r["version"], r["class"], r["files_in"], r["rows"]) for r in told] == [
        (3, "COMPACT_MINOR", 2, 2)
    ]
    assert one.collect() == told  # it ran once
    null = call(spark, f"compact('{table}', 'MAJOR', map('p', CAST(NULL AS STRING)))")
    assert [(r["version"], r["class"], r["files_in"]) for r in null] == [(4, "COMPACT_MAJOR", 2)]
    assert call(spark, f"compact('{table}', 'smallfiles')")[0]["version"] is None
    assert spark.sql(f"ALTER TABLE {table} COMPACT MINOR").schema == one.schema
    assert versions(table) == [0, 1, 2, 3, 4]
    plan = spark.sql(f"EXPLAIN CALL interlock.compact('{table}')").collect()[0][0]
    assert "compact" in plan


def test_a_path_with_nothing_there(spark: SparkSession, tmp_path: Path) -> None:
    def told() -> list[str]:
        with pytest.raises(PySparkException) as caught:
            call(spark, f"files('{tmp_path}/t')")
        return caught.value.getMessage().splitlines()

    assert told()[1] == f"There is nothing at {tmp_path}/t."
    (tmp_path / "t").mkdir()
    assert told()[1] == "It is not a Delta table, and only Delta tables have versions."


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("history(NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("history('t', limit => -1)", "INTERLOCK_INVALID_ARGUMENT"),
        ("history('t', limit => 1.5)", "INTERLOCK_INVALID_ARGUMENT"),
        ("history('t', map('id', '1'))", "INTERLOCK_NOT_A_PARTITION_COLUMN"),
        ("history('missing')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("versions('a_view')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("files('/missing')", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("files('{path}@v1')", "INTERLOCK_NOT_A_WHOLE_TABLE"),
        ("conflicts('t', limit => -1)", "INTERLOCK_INVALID_ARGUMENT"),
        ("explain_conflict('t', NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("explain_conflict('t', 'nothing')", "INTERLOCK_UNKNOWN_TRANSACTION"),
        ("explain_conflict('missing', 'x')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("set_policy('pq', 'serializable')", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("compact('t', 'huge')", "INTERLOCK_INVALID_ARGUMENT"),
        ("compact('t', NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("compact('stock')", "INTERLOCK_POLICY_REQUIRED"),
        ("history()", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("history('t', limits => 1)", "UNRECOGNIZED_PARAMETER_NAME"),
        ("nothing('t')", "INTERLOCK_UNKNOWN_PROCEDURE"),
        ("set_policy('t', '')", "INTERLOCK_UNKNOWN_POLICY"),
    ],
)
def test_refusals(spark: SparkSession, t: Table, text: str, condition: str) -> None:
    spark.range(1).createOrReplaceTempView("a_view")
    spark.sql("CREATE TABLE IF NOT EXISTS pq (id INT) USING parquet")
    spark.sql("CREATE TABLE IF NOT EXISTS stock (id INT) USING delta")
    with pytest.raises(PySparkException) as caught:
        call(spark, text.format(path=t.path))
    assert caught.value.getCondition() == condition


@pytest.mark.parametrize(
    ("text", "told", "untold"),
    [
        ("histry('t')", "There is no procedure 'histry'.\nDid you mean 'history'?", ""),
        ("set_policy('t', ' ')", "The policies are: maxcompute_delta,", "Did you mean"),
        ("history('t', map('id', '1'))", "Name one of them. ", "DELETE"),
    ],
)
def test_what_refusals_suggest(
    spark: SparkSession, t: Table, text: str, told: str, untold: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        call(spark, text.format(path=t.path))
    assert told in str(caught.value)
    assert not untold or untold not in str(caught.value)
