"""Changes of metadata that pass other jobs, and those that do not, in both orders."""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock import MetadataChangedError
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    rows,
    sql_race,
)

COLUMNS = "(id INT, v STRING) USING delta"
INSERT = "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
SET = "ALTER TABLE {t} SET TBLPROPERTIES "
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMN w INT COMMENT 'new'"
OWNER = SET + "('team' = 'x')"
COMMENT = "COMMENT ON TABLE {t} IS 'of events'"
HARMFUL = (
    SET + "('delta.appendOnly' = 'true')",
    SET + "('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE {t} ALTER COLUMN v FIRST",
    "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
    "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.enableDeletionVectors')",
)


def table_of(spark: SparkSession, path: Path, *, policy: str = "row_level") -> Table:
    columns = COLUMNS.replace("id INT", "id INT NOT NULL")
    return make_table(spark, path, policy=policy, columns=columns, statements=(INSERT,))


def described(spark: SparkSession, table: Table) -> tuple[str | None, dict[str, str], list[str]]:
    """The table's comment, its properties, and its columns with their comments."""
    detail = spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    schema = spark.sql(f"SELECT * FROM {table}").schema
    columns = [f"{field.name} {field.metadata.get('comment', '')}".strip() for field in schema]
    return detail["description"], detail["properties"], columns


def test_parallel_models_on_one_table(spark: SparkSession, table_path: Path) -> None:
    """dbt models set properties at their end; all of them began at one version."""
    table = table_of(spark, table_path)
    statements = (
        OWNER,
        "INSERT INTO {t} VALUES (4, 'd')",
        SET + "('delta.logRetentionDuration' = 'interval 60 days', 'b' = '2')",
        UPDATE,
        COMMENT,
        "OPTIMIZE {t}",
        "ALTER TABLE {t} ALTER COLUMN v COMMENT 'value'",
        OWNER,
    )
    ended = sql_race(spark, table, *statements)
    assert [job.error for job in ended] == [None] * 8
    comment, properties, columns = described(spark, table)
    assert comment == "of events"
    found = {key: properties.get(key) for key in ("team", "b", "delta.logRetentionDuration")}
    assert found == {"team": "x", "b": "2", "delta.logRetentionDuration": "interval 60 days"}
    assert columns == ["id", "v value"]
    expected = ((1, "U"), (2, "b"), (3, "c"), (4, "d"))
    assert rows(spark, table) == deltalake_rows(table) == expected
    check_log(table)


@pytest.mark.variant_cases(but=["serializable"])
@pytest.mark.parametrize("policy", ["serializable", "write_serializable"])
def test_policies_by_files(spark: SparkSession, table_path: Path, policy: str) -> None:
    table = table_of(spark, table_path, policy=policy)
    ended = sql_race(spark, table, OWNER, UPDATE, COMMENT)
    assert [job.error for job in ended] == [None] * 3
    assert described(spark, table)[0] == "of events"
    assert rows(spark, table) == deltalake_rows(table) == ((1, "U"), (2, "b"), (3, "c"))


JOBS = {
    "INSERT INTO {t} VALUES (4, 'd')": ((1, "a"), (2, "b"), (3, "c"), (4, "d")),
    UPDATE: ((1, "U"), (2, "b"), (3, "c")),
    "DELETE FROM {t} WHERE id = 1": ((2, "b"), (3, "c")),
    "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN "
    "UPDATE SET v = 'M'": ((1, "M"), (2, "b"), (3, "c")),
    "ALTER TABLE {t} COMPACT MAJOR": ((1, "a"), (2, "b"), (3, "c")),
    "INSERT OVERWRITE {t} VALUES (9, 'z')": ((9, "z"),),
}


@pytest.mark.variant_cases(but=["INSERT INTO*", "UPDATE*", "INSERT OVERWRITE*"])
@pytest.mark.parametrize("job", JOBS)
def test_a_new_column(spark: SparkSession, table_path: Path, job: str) -> None:
    table = table_of(spark, table_path)
    added, later = sql_race(spark, table, ADD_COLUMN, job)
    assert (added.error, later.error) == (None, None)
    assert latest_version(table) == 3
    expected = tuple((*row, None) for row in JOBS[job])
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert described(spark, table)[2] == ["id", "v", "w new"]
    spark.sql(f"INSERT INTO {table} VALUES (7, 'g', 7)")
    assert rows(spark, table) == in_order((*expected, (7, "g", 7)))
    check_log(table)


@pytest.mark.variant_cases(but=["*appendOnly*", "*v FIRST"])
@pytest.mark.parametrize("change", HARMFUL)
def test_other_changes_fail_the_jobs_that_they_meet(
    spark: SparkSession, table_path: Path, change: str
) -> None:
    table = table_of(spark, table_path)
    altered, later = sql_race(spark, table, change, UPDATE)
    assert altered.error is None
    assert isinstance(later.error, MetadataChangedError)
    unchanged = spark.sql(f"SELECT id, v FROM {table} ORDER BY id")
    assert [tuple(row) for row in unchanged.collect()] == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.variant_cases(but=["*{t} SET TBLPROPERTIES ('team' = 'y')"])
@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (OWNER, SET + "('team' = 'y')"),
        (OWNER, "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('team')"),
        (COMMENT, COMMENT.replace("events", "orders")),
        (HARMFUL[0], OWNER),
    ],
)
def test_two_changes_of_one_thing(
    spark: SparkSession, table_path: Path, earlier: str, later: str
) -> None:
    table = table_of(spark, table_path)
    spark.sql((SET + "('team' = 'w')").format(t=table))
    assert isinstance(last_of(spark, table, (earlier,), later), MetadataChangedError)


def test_the_policies_of_maxcompute_fail_them_all(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path, policy="maxcompute_delta")
    assert isinstance(last_of(spark, table, (OWNER,), UPDATE), MetadataChangedError)
