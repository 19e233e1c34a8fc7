"""REPLACE keeps a table's policy; stock drops every property that the statement does not repeat."""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import InterlockError
from pyspark.sql import SparkSession

from tests.kit.properties import REQUIRED, check_policy, latest
from tests.kit.support import Table, deltalake_rows, make_table, rows, sql_race, tags, versions

POLICY = "maxcompute_delta"
EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))
MINE = {"mine": "yes"}

REPLACING = (
    "spark.sql(f'REPLACE TABLE {t} USING delta AS SELECT * FROM {source}')",
    "spark.sql(f'CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {source}')",
    "spark.sql(f'CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (v) "
    "AS SELECT * FROM {source}')",
    "spark.sql(f'CREATE OR REPLACE TABLE {t} (id INT, v STRING) USING delta')",
    "spark.sql(f'REPLACE TABLE {t} (id INT, v STRING) USING delta')",
    "spark.sql(f'CREATE OR REPLACE TABLE {p} USING delta AS SELECT * FROM {source}')",
    "df.writeTo(t).using('delta').createOrReplace()",
    "df.writeTo(t).using('delta').replace()",
    "DeltaTable.createOrReplace(spark).tableName(t).addColumns(df.schema).execute()",
    "DeltaTable.replace(spark).location(path).addColumns(df.schema).execute()",
)
OVERWRITING = (
    "df.write.format('delta').mode('overwrite').saveAsTable(t)",
    "df.write.format('delta').mode('overwrite').option('overwriteSchema', True).saveAsTable(t)",
    "df.write.format('delta').mode('overwrite').save(path)",
    "df.write.format('delta').mode('overwrite').option('overwriteSchema', True).save(path)",
    "spark.sql(f'INSERT OVERWRITE {t} SELECT * FROM {source}')",
)


def named(spark: SparkSession, table: Table) -> str:
    """Give a table a name in the catalog."""
    name = f"t_{abs(hash(table.path))}"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{table.path}'")
    return name


def replace(spark: SparkSession, code: str, table: Table) -> None:
    """Run Python code that puts the row (9, 'z'), or none, in the table's place."""
    from delta.tables import DeltaTable

    df = spark.createDataFrame([(9, "z")], "id INT, v STRING")
    df.createOrReplaceTempView("source")
    known = {"spark": spark, "DeltaTable": DeltaTable, "df": df, "source": "source"}
    exec(code, {**known, "t": named(spark, table), "p": str(table), "path": str(table.path)})


VARIATIONS = {REPLACING[2], REPLACING[4], REPLACING[-1], *OVERWRITING[2:]}


@pytest.mark.variant_cases(
    but=[
        "spark.sql(f'REPLACE TABLE {t} USING delta AS SELECT * FROM {source}')",
        "spark.sql(f'REPLACE TABLE {t} (id INT, v STRING) USING delta')",
        "df.writeTo(t).using('delta').createOrReplace()",
        "df.write.format('delta').mode('overwrite').saveAsTable(t)",
    ]
)
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, marks=[pytest.mark.soak] if code in VARIATIONS else [])
        for code in (*REPLACING, *OVERWRITING)
    ],
)
def test_the_policy_stays(spark: SparkSession, table_path: Path, code: str) -> None:
    table = make_table(spark, table_path, policy=POLICY, properties=MINE)
    replace(spark, code, table)
    assert versions(table) == [0, 1, 2, 3]
    check_policy(table, POLICY)
    assert tags(table, 3) == {"interlock.class": "OVERWRITE", "interlock.policy": POLICY}
    assert ("mine" in latest(table).properties) == (code in OVERWRITING)
    assert rows(spark, table) == deltalake_rows(table) == expected_rows(code)


def expected_rows(code: str) -> tuple[tuple[object, ...], ...]:
    creates_empty = "STRING) USING" in code or "addColumns" in code
    return () if creates_empty else ((9, "z"),)


def test_the_nightly_full_refresh_stays_protected(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy=POLICY)
    for _ in range(2):
        replace(spark, REPLACING[1], table)
    check_policy(table, POLICY)
    won, lost = sql_race(spark, table, "INSERT INTO {t} VALUES (5, 'e')", "DELETE FROM {t}")
    assert (won.ok, lost.ok, lost.version) == (True, False, None)
    assert rows(spark, table) == deltalake_rows(table) == ((5, "e"), (9, "z"))


def test_the_statement_may_set_another_policy(spark: SparkSession, table_path: Path) -> None:
    policy = "maxcompute_transactional"
    table = make_table(spark, table_path, policy=POLICY)
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} USING delta "
        f"TBLPROPERTIES ('interlock.policy' = '{policy}') AS SELECT 9 AS id"
    )
    assert versions(table) == [0, 1, 2, 3]
    check_policy(table, policy)


def test_the_statement_may_set_a_policy_for_the_first_time(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy=None)
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} USING delta "
        f"TBLPROPERTIES ('interlock.policy' = '{POLICY}') AS SELECT 9 AS id"
    )
    assert versions(table) == [0, 1, 2, 3]
    check_policy(table, POLICY)
    assert rows(spark, table) == deltalake_rows(table) == ((9,),)


@pytest.mark.parametrize("key", REQUIRED)
def test_the_statement_cannot_turn_off_what_the_policy_requires(
    spark: SparkSession, table_path: Path, key: str
) -> None:
    table = make_table(spark, table_path, policy=POLICY)
    with pytest.raises(InterlockError) as caught:
        spark.sql(
            f"CREATE OR REPLACE TABLE {table} USING delta "
            f"TBLPROPERTIES ('{key}' = 'false') AS SELECT 9 AS id"
        )
    assert caught.value.getCondition() == "INTERLOCK_REQUIRED_PROPERTY"
    assert versions(table) == [0, 1, 2]
    assert rows(spark, table) == EXAMPLE
