"""`spark.interlock.defaultPolicy`: for new tables, however they are made, and for no others."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from interlock.errors import InterlockError
from pyspark.sql import SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.properties import check_policy, latest
from tests.kit.spark_version import since_4_2
from tests.kit.support import Table, make_table, tags, versions

POLICY = "maxcompute_transactional"
DEFAULT = {"spark.interlock.defaultPolicy": POLICY}

numbers = itertools.count()

NEW = (
    "spark.sql(f'CREATE TABLE {t} (id BIGINT) USING delta LOCATION \"{path}\"')",
    "spark.sql(f'CREATE TABLE {t} USING delta LOCATION \"{path}\" AS SELECT * FROM range(1)')",
    "spark.sql(f'CREATE OR REPLACE TABLE {t} (id BIGINT) USING delta LOCATION \"{path}\"')",
    "spark.sql(f'CREATE TABLE delta.`{path}` (id BIGINT) USING delta')",
    "spark.sql(f'CREATE TABLE delta.`{path}` SHALLOW CLONE {old}')",
    "df.write.format('delta').option('path', path).saveAsTable(t)",
    "df.write.format('delta').save(path)",
    "df.writeTo(t).using('delta').tableProperty('location', path).create()",
    "DeltaTable.create(spark).location(path).addColumns(df.schema).execute()",
    "spark.readStream.format('delta').load(old_path).writeStream.format('delta')"
    ".option('checkpointLocation', path + '-checkpoint').trigger(availableNow=True)"
    ".start(path).awaitTermination()",
    "df.write.parquet(path), spark.sql(f'CONVERT TO DELTA parquet.`{path}`')",
)
LIKE = "spark.sql(f'CREATE TABLE {t} LIKE {old} LOCATION \"{path}\"')"
EXISTING = (
    "spark.sql(f'INSERT INTO {old} VALUES (5)')",
    "spark.sql(f'CREATE OR REPLACE TABLE {old} (id BIGINT) USING delta')",
    "spark.sql(f'CREATE TABLE IF NOT EXISTS {old} (id BIGINT) USING delta')",
    "spark.sql(f'CREATE TABLE {t} USING delta LOCATION \"{old_path}\"')",
    'spark.sql(f\'ALTER TABLE {old} SET TBLPROPERTIES ("a" = "b")\')',
    "spark.sql(f'ALTER TABLE {old} ADD COLUMN w INT')",
    "df.write.format('delta').mode('append').save(old_path)",
    "df.write.format('delta').mode('overwrite').saveAsTable(old)",
    "df.write.format('delta').mode('overwrite').option('overwriteSchema', True).save(old_path)",
    "df.writeTo(old).using('delta').createOrReplace()",
)


def run(spark: SparkSession, code: str, path: Path, old: Table) -> None:
    """Run Python code that names a new table or an old one."""
    from delta.tables import DeltaTable

    known = {
        "spark": spark,
        "DeltaTable": DeltaTable,
        "df": spark.range(1),
        "t": f"t{next(numbers)}",
        "path": str(path),
        "old": str(old),
        "old_path": str(old.path),
    }
    with set_for_now(spark, DEFAULT):
        exec(code, known)


def create(spark: SparkSession, table: Table, properties: str = "'a' = 'b'") -> None:
    spark.sql(f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({properties})")


@pytest.fixture
def old(spark: SparkSession, tmp_path: Path) -> Table:
    statements = ("INSERT INTO {t} VALUES (1)",)
    path = tmp_path / "old"
    return make_table(
        spark, path, policy=None, columns="(id BIGINT) USING delta", statements=statements
    )


@pytest.mark.variant_cases(but=["*AS SELECT*", "*.save(path)", "*LIKE*"])
@pytest.mark.parametrize("code", [*NEW, pytest.param(LIKE, marks=since_4_2)])
def test_new_tables_get_it(spark: SparkSession, table_path: Path, old: Table, code: str) -> None:
    run(spark, code, table_path, old)
    table = Table(table_path)
    check_policy(table, POLICY)
    spark.sql(f"INSERT INTO {table} VALUES (7)")
    assert tags(table, max(versions(table)))["interlock.policy"] == POLICY


@pytest.mark.variant_cases(but=["*INSERT*", "*CREATE*"])
@pytest.mark.parametrize(
    "code", [*EXISTING[:2], *(pytest.param(code, marks=pytest.mark.soak) for code in EXISTING[2:])]
)
def test_existing_tables_do_not(
    spark: SparkSession, table_path: Path, old: Table, code: str
) -> None:
    name = f"n{next(numbers)}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{old.path}'")
    run(spark, code.replace("{old}", name).replace("(old)", f"({name!r})"), table_path, old)
    check_policy(old, None)
    assert not latest(old).properties.keys() & {"interlock.policy", "delta.enableRowTracking"}


def test_the_statement_may_name_another(spark: SparkSession, table_path: Path) -> None:
    table = Table(table_path)
    with set_for_now(spark, DEFAULT):
        create(spark, table, "'interlock.policy' = 'maxcompute_delta'")
    check_policy(table, "maxcompute_delta")


def test_tables_of_other_formats_are_not_concerned(spark: SparkSession) -> None:
    with set_for_now(spark, DEFAULT):
        spark.sql("CREATE TABLE parquet_one (id INT) USING parquet")
    shown = spark.sql("SHOW TBLPROPERTIES parquet_one").collect()
    assert not [row for row in shown if "interlock" in row["key"]]


def test_an_unknown_default_is_refused(spark: SparkSession, table_path: Path) -> None:
    unknown = {"spark.interlock.defaultPolicy": "maxcompute_dleta"}
    with set_for_now(spark, unknown), pytest.raises(InterlockError) as caught:
        create(spark, Table(table_path))
    assert caught.value.getCondition() == "INTERLOCK_UNKNOWN_POLICY"
    assert "Did you mean 'maxcompute_delta'?" in str(caught.value)
    assert not table_path.exists()


def test_a_contrary_property_beside_the_default_is_refused(
    spark: SparkSession, table_path: Path
) -> None:
    with set_for_now(spark, DEFAULT), pytest.raises(InterlockError) as caught:
        create(spark, Table(table_path), "'delta.enableRowTracking' = 'false'")
    assert caught.value.getCondition() == "INTERLOCK_REQUIRED_PROPERTY"
    assert not table_path.exists()
