"""Columns with the names that Delta's own queries use, on tables whose DML marks rows dead.

Delta finds the rows to mark by a query to which it adds columns by name. Whoever has columns of
these names, in the table or in the source of a MERGE, works as without a policy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from tests.kit.support import Table, commit, make_table, race, rows

# Of the query for rows to mark, then of Delta's and Spark's metadata of rows and files.
MARKING = ("filePath", "rowIndexCol", "deletionVectorId", "dvFilePath")
OF_FILES = ("path", "stats", "row_index", "row_id", "row_commit_version", "base_row_id")
START = "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, {all} FROM VALUES (1), (2), (3), (4) s(id)"


def table_with(spark: SparkSession, path: Path, names: tuple[str, ...], **properties: str) -> Table:
    """Make a table with these columns; in the row with id n, each of them is 'n'."""
    columns = ", ".join(f"`{name}` STRING" for name in names)
    values = ", ".join(["CAST(id AS STRING)"] * len(names))
    return make_table(
        spark,
        path,
        policy="row_level",
        columns=f"(id INT, {columns}) USING delta",
        properties={key.replace("_", "."): value for key, value in properties.items()},
        statements=(START.replace("{all}", values),),
    )


def merge(table: Table, names: tuple[str, ...], key: str, clauses: str) -> str:
    """MERGE of a source with the same columns, matched by all of them."""
    columns = ", ".join(f"'{key}' AS `{name}`" for name in names)
    on = " AND ".join(f"t.`{name}` = s.`{name}`" for name in names)
    return f"MERGE INTO {table} t USING (SELECT {key} AS id, {columns}) s ON {on} {clauses}"


def check_dml(spark: SparkSession, table: Table, names: tuple[str, ...]) -> None:
    """Run an UPDATE, a DELETE and MERGEs with each kind of clause; each marks rows of the file."""
    first = f"`{names[0]}`"
    upsert = "WHEN MATCHED THEN UPDATE SET id = 20 WHEN NOT MATCHED THEN INSERT *"
    gone = f"WHEN NOT MATCHED BY SOURCE AND t.{first} = '4' THEN DELETE"
    spark.sql(f"UPDATE {table} SET {first} = 'one' WHERE {first} = '1'")
    spark.sql(f"DELETE FROM {table} WHERE {first} = '3'")
    for key in ("2", "5"):
        spark.sql(merge(table, names, key, upsert))
    spark.sql(merge(table, names, "2", f"WHEN MATCHED THEN DELETE {gone}"))
    others = names[1:]
    assert rows(spark, table) == ((1, "one", *("1" for _ in others)), (5, *("5" for _ in names)))
    marked = [
        version
        for version in range(2, 7)
        if any(action.get("add", {}).get("deletionVector") for action in commit(table, version))
    ]
    assert marked[:3] == [2, 3, 4]


@pytest.mark.parametrize("names", [MARKING, OF_FILES], ids=["marking", "files"])
def test_the_names_of_columns(
    spark: SparkSession, table_path: Path, names: tuple[str, ...]
) -> None:
    check_dml(spark, table_with(spark, table_path, names), names)


def test_a_name_in_another_case(spark: SparkSession, table_path: Path) -> None:
    check_dml(spark, table_with(spark, table_path, ("FILEPATH",)), ("FILEPATH",))


def test_the_names_with_column_mapping(spark: SparkSession, table_path: Path) -> None:
    table = table_with(spark, table_path, MARKING, delta_columnMapping_mode="name")
    check_dml(spark, table, MARKING)


def test_names_that_only_the_source_of_a_merge_has(spark: SparkSession, table_path: Path) -> None:
    table = table_with(spark, table_path, ("k",))
    columns = ", ".join(f"'{name}' AS `{name}`" for name in MARKING)
    source = spark.sql(f"SELECT '2' AS k, {columns}").alias("s")
    DeltaTable.forPath(spark, str(table.path)).alias("t").merge(
        source, "t.k = s.k"
    ).whenMatchedUpdate(set={"k": "s.dvFilePath"}).whenNotMatchedBySourceDelete(
        "t.id = 1"
    ).execute()
    assert rows(spark, table) == ((2, "dvFilePath"), (3, "3"), (4, "4"))


def test_two_jobs_on_such_a_table(spark: SparkSession, table_path: Path) -> None:
    """Both are judged by the rows that they read: other rows of the file, then the same row."""
    table = table_with(spark, table_path, MARKING)
    where = "`filePath` = '{}' AND `dvFilePath` = '{}'"
    update = f"UPDATE {table} SET id = 10 WHERE {where.format(1, 1)}"
    upsert = "WHEN MATCHED THEN UPDATE SET id = 20 WHEN NOT MATCHED THEN INSERT *"
    first, other, same = race(
        spark, update, merge(table, MARKING, "2", upsert), merge(table, MARKING, "1", upsert)
    )
    assert (first.error, other.error) == (None, None)
    assert same.error is not None
    assert "INTERLOCK_CONCURRENT" in str(same.error)
    assert {row[0] for row in rows(spark, table)} == {3, 4, 10, 20}
