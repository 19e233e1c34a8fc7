"""interlock_history and the like: table functions that give what the procedures give."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.kit.spark_version import since_4_2
from tests.kit.support import Table, commit_file, make_table

FUNCTIONS = ("blocks", "conflicts", "files", "history", "versions")


@pytest.fixture(scope="module")
def t(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A partitioned table at version 3, also by the name of logged.t; logged.v is a view."""
    table = make_table(
        spark,
        tmp_path_factory.mktemp("functions") / "table",
        columns="(id INT, p STRING) USING delta PARTITIONED BY (p)",
        statements=(
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO {t} VALUES (3, 'a')",
            "DELETE FROM {t} WHERE id = 1",
        ),
    )
    for statement in (
        "DROP DATABASE IF EXISTS logged CASCADE",
        "CREATE DATABASE logged",
        f"CREATE TABLE logged.t USING delta LOCATION '{table.path}'",
        "CREATE TEMPORARY VIEW deletes AS"
        " SELECT version FROM interlock_history('logged.t') WHERE rows_out > 0",
        "CREATE VIEW logged.v AS SELECT id FROM logged.t",
    ):
        spark.sql(statement)
    return table


def rows(spark: SparkSession, query: str) -> list[Row]:
    return spark.sql(query).collect()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_is_its_procedure(spark: SparkSession, t: Table, name: str) -> None:
    called = spark.sql(f"CALL interlock.{name}('logged.t')")
    for table in ("logged.t", t.path, f"{t}"):
        selected = spark.sql(f"SELECT * FROM interlock_{name}('{table}')")
        assert selected.schema == called.schema
        assert selected.collect() == called.collect()


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    ("arguments", "versions"),
    [
        ("'logged.t', NULL, 1 + 1", [3, 2]),
        ("limit => 1, table => 'logged.t'", [3]),
        ("'logged.t', partition => map('P', 'b')", [1]),
        ("'logged.t', partition => map('p', NULL)", []),
        ("'logged.t', limit => 0", []),
    ],
)
def test_arguments(spark: SparkSession, t: Table, arguments: str, versions: list[int]) -> None:
    found = rows(spark, f"SELECT version FROM interlock_history({arguments})")
    assert [row.version for row in found] == versions


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT version FROM {history} WHERE rows_out > 0", [(3,)]),
        ("SELECT version FROM {history} LIMIT 2", [(3,), (2,)]),
        ("SELECT version FROM {history} WHERE version < 3 LIMIT 1", [(2,)]),
        ("SELECT version FROM {history} LIMIT 1 OFFSET 2", [(1,)]),
        ("SELECT version FROM {history} ORDER BY version LIMIT 1", [(0,)]),
        (
            "SELECT f.partition['p'], h.operation FROM interlock_files('logged.t') f"
            " JOIN {history} h ON f.row_commit_version = h.version ORDER BY 1, h.version",
            [("a", "INSERT INTO"), ("b", "INSERT INTO")],
        ),
        (
            "WITH h AS (SELECT * FROM {history})"
            " SELECT b.operation FROM h a JOIN h b ON b.version = a.read_version"
            " WHERE a.operation = 'DELETE'",
            [("INSERT INTO",)],
        ),
        ("SELECT id FROM logged.t WHERE id IN (SELECT version FROM {history})", [(2,), (3,)]),
    ],
)
def test_queries(
    spark: SparkSession, t: Table, query: str, expected: list[tuple[object, ...]]
) -> None:
    found = rows(spark, query.format(history="interlock_history('logged.t')"))
    assert (found if "ORDER" in query or "LIMIT" in query else sorted(found)) == expected


def test_null_and_its_name_are_two_calls(spark: SparkSession, table_path: Path) -> None:
    """Spark treats calls with the same text as one table, in EXCEPT and in its cache."""
    columns = "(id INT, p STRING) USING delta PARTITIONED BY (p)"
    insert = "INSERT INTO {t} VALUES (1, NULL)"
    table = make_table(spark, table_path, columns=columns, statements=(insert,))
    files = f"SELECT path, size FROM interlock_files('{table.path}', map('p', %s))"
    assert len(rows(spark, f"{files % 'NULL'} EXCEPT {files % repr('NULL')} WHERE size > 0")) == 1


def test_a_limit_of_the_query_ends_the_reading(spark: SparkSession, table_path: Path) -> None:
    history = f"SELECT version FROM interlock_history('{make_table(spark, table_path).path}')"
    assert rows(spark, history) == [(2,), (1,), (0,)]
    commit_file(Table(table_path), 0).write_text("cut off")
    assert rows(spark, f"{history} LIMIT 1") == [(2,)]
    with pytest.raises(Exception, match="JsonParse"):
        rows(spark, history)


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    ("call", "condition", "parameters"),
    [
        ("history('logged.t', limit => -1)", "INVALID_ARGUMENT", {"found": "-1"}),
        ("versions('logged.t', 1.5)", "INVALID_ARGUMENT", {"found": "1.5"}),
        ("versions('logged.t', 'x')", "INVALID_ARGUMENT", {"expected": "a constant number"}),
        ("files('logged.t', 'x')", "INVALID_ARGUMENT", {"what": "The partition"}),
        ("files('logged.t', rand())", "INVALID_ARGUMENT", {"what": "The partition"}),
        ("conflicts(NULL)", "INVALID_ARGUMENT", {"what": "The table"}),
        ("files('logged.t', map('q', 1))", "NOT_A_PARTITION_COLUMN", {"column": "q"}),
        ("history('/none')", "NOT_A_DELTA_TABLE", {"operation": "interlock_history"}),
    ],
)
def test_errors(
    spark: SparkSession, t: Table, call: str, condition: str, parameters: dict[str, str]
) -> None:
    with pytest.raises(PySparkException) as caught:
        rows(spark, f"SELECT * FROM interlock_{call}")
    assert caught.value.getCondition() == f"INTERLOCK_{condition}"
    found = caught.value.getMessageParameters() or {}
    assert {key: found.get(key) for key in parameters} == parameters


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("history()", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("history('logged.t', lim => 1)", "UNRECOGNIZED_PARAMETER_NAME"),
        ("versions('logged.t', 1, 2)", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("versions('none')", "TABLE_OR_VIEW_NOT_FOUND"),
        ("versions('logged.v')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ],
)
def test_errors_of_spark(spark: SparkSession, t: Table, call: str, condition: str) -> None:
    with pytest.raises(PySparkException) as caught:
        rows(spark, f"SELECT * FROM interlock_{call}")
    assert caught.value.getCondition() == condition


@since_4_2
def test_objects_of_these_names_are_reached_by_their_schema(spark: SparkSession, t: Table) -> None:
    spark.sql("CREATE TABLE logged.interlock_files (own INT) USING delta")
    spark.sql(
        "CREATE FUNCTION logged.interlock_files(name STRING)"
        " RETURNS TABLE (own INT) RETURN SELECT 1"
    )
    spark.sql("USE logged")
    try:
        assert rows(spark, "SELECT own FROM interlock_files") == []
        assert rows(spark, "SELECT own FROM logged.interlock_files('t')") == [(1,)]
        assert len(rows(spark, "SELECT path FROM interlock_files('t')")) == 2
    finally:
        spark.sql("USE default")


def test_a_view_sees_later_commits(spark: SparkSession, t: Table) -> None:
    made = spark.sql("SELECT max(version) FROM interlock_versions('logged.t')")
    assert rows(spark, "SELECT version FROM deletes") == [(3,)]
    spark.sql("DELETE FROM logged.t WHERE id = 2")
    assert rows(spark, "SELECT version FROM deletes") == [(4,), (3,)]
    assert made.collect() == [(4,)]  # it had not run before


@since_4_2
def test_a_view_for_all_sessions(spark: SparkSession, t: Table) -> None:
    spark.sql("USE logged")
    spark.sql("CREATE VIEW latest AS SELECT max(version) AS last FROM interlock_versions('t')")
    spark.sql("USE default")
    (before,) = rows(spark, "SELECT last FROM logged.latest")
    spark.sql("INSERT INTO logged.t VALUES (9, 'b')")
    assert rows(spark, "SELECT last FROM logged.latest") == [(before[0] + 1,)]
