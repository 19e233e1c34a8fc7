"""get_latest_version and get_latest_timestamp: what they give, where they stand, refusals."""

from __future__ import annotations

import datetime

import pytest
from interlock.errors import InterlockError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, TimestampType

from tests.kit.spark_version import since_4_2
from tests.kit.support import Table, commit_info, make_table


@pytest.fixture(scope="module")
def t(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table, also by the name of t: created, written, compacted, written."""
    table = make_table(
        spark,
        tmp_path_factory.mktemp("latest") / "table",
        statements=(
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'c')",
            "ALTER TABLE {t} COMPACT MAJOR",
            "DELETE FROM {t} WHERE id = 1",
            "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
        ),
    )
    spark.sql(f"CREATE TABLE t USING delta LOCATION '{table.path}'")
    return table


def value(spark: SparkSession, expression: str) -> object:
    return spark.sql(f"SELECT {expression}").collect()[0][0]


def committed(table: Table, version: int) -> datetime.datetime:
    """In the session's time zone, as Spark gives timestamps."""
    return datetime.datetime.fromtimestamp(commit_info(table, version)["inCommitTimestamp"] / 1000)


def test_versions(spark: SparkSession, t: Table) -> None:
    found = spark.sql(
        f"SELECT get_latest_version('t'), get_latest_version('default.t', 1), "
        f"get_latest_version('spark_catalog.default.`t`', 1 + 1) AS b, "
        f"get_latest_version('{t}', 6L), get_latest_version('{t.path}', CAST(3 AS TINYINT)), "
        f"GET_LATEST_VERSION('file:{t.path}', length('four'))"
    )
    assert tuple(found.collect()[0]) == (5, 5, 4, 0, 3, 2)
    assert {field.dataType for field in found.schema} == {LongType()}
    assert found.columns[1:3] == ["get_latest_version(default.t, 1)", "b"]


def test_timestamps_are_those_of_changes_of_data(spark: SparkSession, t: Table) -> None:
    found = spark.sql(
        "SELECT get_latest_timestamp('t'), get_latest_timestamp('t', 2), "
        "get_latest_timestamp('t', 3)"
    )
    assert list(found.collect()[0]) == [committed(t, version) for version in (4, 2, 1)]
    assert {field.dataType for field in found.schema} == {TimestampType()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM t TIMESTAMP AS OF get_latest_timestamp('t', 2)", [1, 2, 3]),
        ("SELECT id FROM t WHERE _metadata.row_commit_version = get_latest_version('t', 4)", [3]),
        ("SELECT id FROM t WHERE id BETWEEN get_latest_version('t', 4) AND 9", [2, 3]),
        ("SELECT get_latest_version('t', :n) AS id", [5]),
        ("SELECT id FROM t ORDER BY id LIMIT int(get_latest_version('t', 5))", [2]),
        ("SELECT x.id FROM (SELECT max(id) + get_latest_version('t') AS id FROM t) x", [8]),
    ],
)
def test_places(spark: SparkSession, t: Table, query: str, expected: list[int]) -> None:
    found = spark.sql(query, args={"n": 1} if ":n" in query else None).collect()
    assert sorted(row["id"] for row in found) == expected


@since_4_2
def test_in_views_they_look_anew_and_where_the_view_looks(spark: SparkSession, t: Table) -> None:
    spark.sql("CREATE DATABASE elsewhere")
    spark.sql("CREATE TABLE grows (id INT) USING delta")
    spark.sql("CREATE VIEW latest AS SELECT get_latest_version('grows') AS n")
    spark.sql("INSERT INTO grows VALUES (1)")
    spark.sql("USE elsewhere")
    try:
        assert spark.sql("SELECT * FROM default.latest").collect()[0][0] == 1
    finally:
        spark.sql("USE default")


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("get_latest_version('t', 7)", "INTERLOCK_TOO_FEW_VERSIONS"),
        ("get_latest_timestamp('t', 4)", "INTERLOCK_TOO_FEW_VERSIONS"),
        ("get_latest_version('t', 0)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version('t', -1)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version('t', NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version('t', 1.5)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version('t', '1')", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version('t', 3000000000)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_timestamp('t', id) FROM t", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_timestamp(NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_timestamp(v) FROM t", "INTERLOCK_INVALID_ARGUMENT"),
        ("get_latest_version()", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("get_latest_version('t', 1, 1)", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("get_latest_version('missing')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("get_latest_version('/missing')", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("get_latest_version('a view')", "PARSE_SYNTAX_ERROR"),
        ("get_latest_version('a_view')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
        ("get_latest_version('pq')", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("get_latest_version('{path}@v1')", "INTERLOCK_NOT_A_WHOLE_TABLE"),
    ],
)
def test_refusals(spark: SparkSession, t: Table, call: str, condition: str) -> None:
    spark.range(1).createOrReplaceTempView("a_view")
    spark.sql("CREATE TABLE IF NOT EXISTS pq (id INT) USING parquet")
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"SELECT {call.format(path=t.path)}")
    assert caught.value.getCondition() == condition


def test_the_error_says_how_many_there_are(spark: SparkSession, t: Table) -> None:
    with pytest.raises(InterlockError, match=r"t does not have 9 versions.\nIts log has 6"):
        value(spark, "get_latest_version('t', 9)")
    with pytest.raises(InterlockError, match=r"t does not have 9 time versions.\nIts log has 3"):
        value(spark, "get_latest_timestamp('t', 9)")
    spark.sql("CREATE TABLE empty (id INT) USING delta")
    assert value(spark, "get_latest_version('empty')") == 0
    with pytest.raises(InterlockError, match="Its log has 0"):
        value(spark, "get_latest_timestamp('empty')")
    with pytest.raises(AnalysisException):
        value(spark, "get_latest_version(t)")
