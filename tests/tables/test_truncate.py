"""TRUNCATE TABLE, whole and by PARTITION: what it removes, refuses and leaves to Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interlock.errors import InterlockError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    commit,
    deltalake_rows,
    ids,
    ids_in,
    make_table,
    rows,
    sql_race,
    tags,
    versions,
)

COLUMNS = "(id INT, d DATE, n INT, s STRING) USING delta PARTITIONED BY (d, n, s)"
ROWS = (
    "(1, DATE'2026-01-01', 1, 'x')",
    "(2, DATE'2026-01-01', 2, 'x')",
    "(3, DATE'2026-01-02', 1, 'it''s')",
    "(4, NULL, 1, NULL)",
)
TYPED = (f"INSERT INTO {{t}} VALUES {', '.join(ROWS)}",)


def typed_table(spark: SparkSession, path: Path, mapping: str = "none") -> Table:
    """Put a copy of a table with partitions of three types at a test's `path`."""
    original = path.parent.parent / "originals" / f"typed-{mapping}"
    if not original.exists():
        properties = {"delta.columnMapping.mode": mapping}
        make_table(spark, original, columns=COLUMNS, properties=properties, statements=TYPED)
    shutil.copytree(original, path)
    return Table(path)


@pytest.mark.variant_cases("n = *", "s = *")
@pytest.mark.parametrize(
    ("partition", "left"),
    [
        ("d = '2026-01-01', n = 1, s = 'x'", [2, 3, 4]),
        ("d = DATE'2026-01-01'", [3, 4]),
        ("n = 1", [2]),
        pytest.param("n = '1'", [2], marks=pytest.mark.soak),
        ("N = 2", [1, 3, 4]),
        pytest.param("s = 'x', n = 2", [1, 3, 4], marks=pytest.mark.soak),
        ("s = 'it''s'", [1, 2, 4]),
        ("d = null", [1, 2, 3]),
        pytest.param("s = null, n = 1", [1, 2, 3], marks=pytest.mark.soak),
        ("n = 77", [1, 2, 3, 4]),
    ],
)
def test_removes_the_partitions_that_match(
    spark: SparkSession, table_path: Path, partition: str, left: list[int]
) -> None:
    table = typed_table(spark, table_path)
    spark.sql(f"TRUNCATE TABLE {table} PARTITION ({partition})")
    assert ids(spark, table) == left
    assert versions(table) == [0, 1, 2]
    assert tags(table, 2)["interlock.class"] == "OVERWRITE"
    assert "interlock.replaced" in tags(table, 2)
    assert sum("remove" in action for action in commit(table, 2)) == 4 - len(left)
    assert not any("add" in action for action in commit(table, 2))
    assert ids_in(deltalake_rows(table)) == left


def test_knows_columns_by_their_mapped_names(spark: SparkSession, table_path: Path) -> None:
    table = typed_table(spark, table_path, "name")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN n TO number")
    spark.sql(f"TRUNCATE TABLE {table} PARTITION (number = 1, s = 'x')")
    assert ids(spark, table) == [2, 3, 4]


@pytest.mark.parametrize(
    ("partition", "condition"),
    [
        ("id = 1", "INTERLOCK_NOT_A_PARTITION_COLUMN"),
        ("n = 1, nothing = 2", "INTERLOCK_NOT_A_PARTITION_COLUMN"),
        ("n = 'one'", "CAST_INVALID_INPUT"),
        ("d = 'yesterday morning'", "CAST_INVALID_INPUT"),
        ("n", None),
    ],
)
def test_refuses_what_names_no_partition(
    spark: SparkSession, table_path: Path, partition: str, condition: str | None
) -> None:
    table = typed_table(spark, table_path)
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"TRUNCATE TABLE {table} PARTITION ({partition})")
    if condition is not None:
        assert caught.value.getCondition() == condition
    assert ids(spark, table) == [1, 2, 3, 4]
    assert versions(table) == [0, 1]


def test_a_table_without_partitions_has_none_to_name(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path)
    with pytest.raises(InterlockError, match="The table has: none") as caught:
        spark.sql(f"TRUNCATE TABLE {table} PARTITION (id = 1)")
    assert "Name one of them, or remove rows by other columns with DELETE." in str(caught.value)
    assert caught.value.getCondition() == "INTERLOCK_NOT_A_PARTITION_COLUMN"
    assert versions(table) == [0, 1, 2]


@pytest.mark.parametrize("partition", ["", " PARTITION (p = 1)"])
def test_an_empty_table_gets_a_version(
    spark: SparkSession, table_path: Path, partition: str
) -> None:
    columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
    table = make_table(spark, table_path, columns=columns, statements=())
    spark.sql(f"TRUNCATE TABLE {table}{partition}")
    assert versions(table) == [0, 1]
    assert tags(table, 1)["interlock.class"] == "OVERWRITE"
    won, later = sql_race(
        spark,
        table,
        "INSERT INTO {t} VALUES (1, 1), (2, 2)",
        f"TRUNCATE TABLE {{t}}{partition}",
    )
    assert (won.version, later.version, later.error) == (2, 3, None)
    kept = ((2, 2),) if partition else ()
    assert rows(spark, table) == deltalake_rows(table) == kept


def test_the_null_partition_is_a_scope_of_its_own(spark: SparkSession, table_path: Path) -> None:
    table = typed_table(spark, table_path)
    won, later = sql_race(
        spark,
        table,
        "INSERT INTO {t} VALUES (5, NULL, 5, 'n'), (6, DATE'2026-01-01', 1, 'x')",
        "TRUNCATE TABLE {t} PARTITION (d = null)",
    )
    assert (won.version, later.version, later.error) == (2, 3, None)
    assert ids(spark, table) == [1, 2, 3, 6]
    assert sorted(row[0] for row in deltalake_rows(table)) == [1, 2, 3, 6]  # type: ignore[type-var]


@pytest.mark.parametrize("partition", ["", " PARTITION (n = 1)"])
def test_an_append_only_table_refuses_it(
    spark: SparkSession, table_path: Path, partition: str
) -> None:
    only = {"delta.appendOnly": "true"}
    table = make_table(spark, table_path, columns=COLUMNS, properties=only, statements=TYPED)
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        spark.sql(f"TRUNCATE TABLE {table}{partition}")
    assert versions(table) == [0, 1]
    assert ids(spark, table) == [1, 2, 3, 4]


@pytest.mark.parametrize("part", ["@v0", "/d=2026-01-01"])
def test_a_path_that_names_a_part_of_the_table(
    spark: SparkSession, table_path: Path, part: str
) -> None:
    table = typed_table(spark, table_path)
    with pytest.raises(InterlockError, match="INTERLOCK_NOT_A_WHOLE_TABLE"):
        spark.sql(f"TRUNCATE TABLE delta.`{table.path}{part}`")
    assert versions(table) == [0, 1]


class TestOtherTables:
    """On other tables TRUNCATE is Spark's own statement."""

    def test_a_parquet_table(self, spark: SparkSession) -> None:
        spark.sql("CREATE TABLE pq (id INT, p INT) USING parquet PARTITIONED BY (p)")
        spark.sql("INSERT INTO pq VALUES (1, 1), (2, 2)")
        spark.sql("TRUNCATE TABLE pq PARTITION (p = 1)")
        assert rows(spark, "pq") == ((2, 2),)
        spark.sql("TRUNCATE TABLE pq")
        assert rows(spark, "pq") == ()

    @pytest.mark.parametrize("partition", ["", " PARTITION (p = 1)"])
    @pytest.mark.parametrize(
        ("name", "condition"),
        [("missing", "TABLE_OR_VIEW_NOT_FOUND"), ("view_of_one", "EXPECT_TABLE_NOT_VIEW")],
    )
    def test_no_table(self, spark: SparkSession, name: str, condition: str, partition: str) -> None:
        spark.range(1).createOrReplaceTempView("view_of_one")
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"TRUNCATE TABLE {name}{partition}")
        assert str(caught.value.getCondition()).startswith(condition)
