"""Unknown policies and properties are refused wherever a table can get them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import InterlockError
from pyspark.sql import SparkSession

from tests.kit.properties import latest
from tests.kit.support import Table, make_table, versions

numbers = itertools.count()

WRONG = {
    "INTERLOCK_UNKNOWN_POLICY": ("interlock.policy", "maxcompute_dleta", "maxcompute_delta"),
    "INTERLOCK_UNKNOWN_PROPERTY": ("interlock.polcy", "maxcompute_delta", "interlock.policy"),
}

WAYS = (
    "CREATE TABLE {new} (id INT, v STRING) USING delta TBLPROPERTIES ({property})",
    "CREATE TABLE {new} USING delta TBLPROPERTIES ({property}) AS SELECT 1 AS id",
    "CREATE TABLE IF NOT EXISTS {new} (id INT) USING delta TBLPROPERTIES ({property})",
    "CREATE TABLE {path} (id INT, v STRING) USING delta TBLPROPERTIES ({property})",
    "CREATE TABLE {new} LIKE {old} TBLPROPERTIES ({property})",
    "CREATE TABLE {new} SHALLOW CLONE {old} TBLPROPERTIES ({property})",
    "CREATE TABLE {path} SHALLOW CLONE {old} TBLPROPERTIES ({property})",
    "CREATE OR REPLACE TABLE {old} (id INT) USING delta TBLPROPERTIES ({property})",
    "CREATE OR REPLACE TABLE {old} USING delta TBLPROPERTIES ({property}) AS SELECT 1 AS id",
    "REPLACE TABLE {old} (id INT) USING delta TBLPROPERTIES ({property})",
    "CREATE OR REPLACE TABLE {old_path} (id INT) USING delta TBLPROPERTIES ({property})",
    "ALTER TABLE {old} SET TBLPROPERTIES ({property})",
    "ALTER TABLE {old_path} SET TBLPROPERTIES ({property})",
)
PYTHON_WAYS = (
    "DeltaTable.create(spark).tableName(new).addColumn('id', 'INT').property(*property).execute()",
    "DeltaTable.create(spark).location(path).addColumn('id', 'INT').property(*property).execute()",
    "DeltaTable.createIfNotExists(spark).tableName(new).addColumn('id', 'INT')"
    ".property(*property).execute()",
    "DeltaTable.createOrReplace(spark).tableName(old).addColumn('id', 'INT')"
    ".property(*property).execute()",
    "DeltaTable.replace(spark).location(old_path).addColumn('id', 'INT')"
    ".property(*property).execute()",
    "DeltaTable.forName(spark, old).clone(path, True, False, dict([property]))",
    "df.writeTo(new).using('delta').tableProperty(*property).create()",
    "df.writeTo(old).using('delta').tableProperty(*property).createOrReplace()",
    "df.writeTo(old).using('delta').tableProperty(*property).replace()",
)
OPTION_WAYS = (
    "spark.sql(f\"CREATE TABLE {new} (id INT) USING delta OPTIONS ('{key}' = '{value}')\")",
    "df.write.format('delta').option(key, value).saveAsTable(new)",
    "df.write.format('delta').option(key, value).mode('overwrite').saveAsTable(old)",
    "df.write.format('delta').option(key, value).save(path)",
    "df.write.format('delta').option(key, value).mode('append').save(old_path)",
)


@dataclass(frozen=True)
class Names:
    """A new table by name and path, and an old one with three rows."""

    new: str
    path: Path
    old: str
    old_path: Path

    def of_sql(self) -> dict[str, str]:
        return {
            "new": self.new,
            "path": str(Table(self.path)),
            "old": self.old,
            "old_path": str(Table(self.old_path)),
        }

    def of_python(self) -> dict[str, str]:
        return {
            "new": self.new,
            "path": str(self.path),
            "old": self.old,
            "old_path": str(self.old_path),
        }


@pytest.fixture
def names(spark: SparkSession, tmp_path: Path) -> Names:
    old = make_table(spark, tmp_path / "old", policy=None)
    number = next(numbers)
    spark.sql(f"CREATE TABLE old_{number} USING delta LOCATION '{old.path}'")
    return Names(f"new_{number}", tmp_path / "new", f"old_{number}", old.path)


def check_refused(spark: SparkSession, names: Names, condition: str, run: Any) -> None:
    key, value, nearest = WRONG[condition]
    with pytest.raises(InterlockError) as caught:
        run(key, value)
    assert caught.value.getCondition() == condition
    assert f"Did you mean '{nearest}'?" in str(caught.value)
    check_nothing_left(spark, names)


def check_nothing_left(spark: SparkSession, names: Names) -> None:
    old = Table(names.old_path)
    assert versions(old) == [0, 1, 2]
    assert latest(old).properties == {}
    assert not spark.catalog.tableExists(names.new)
    warehouse = Path((spark.conf.get("spark.sql.warehouse.dir") or "").removeprefix("file:"))
    left = [*names.path.rglob("*"), *(warehouse / names.new).rglob("*")]
    assert [path for path in left if path.is_file()] == []


@pytest.mark.parametrize(("way", "condition"), list(zip(WAYS, cycle(WRONG), strict=False)))
def test_sql_refuses(spark: SparkSession, names: Names, way: str, condition: str) -> None:
    def run(key: str, value: str) -> None:
        spark.sql(way.format(property=f"'{key}' = '{value}'", **names.of_sql()))

    check_refused(spark, names, condition, run)


@pytest.mark.parametrize(("way", "condition"), list(zip(PYTHON_WAYS, cycle(WRONG), strict=False)))
def test_python_refuses(spark: SparkSession, names: Names, way: str, condition: str) -> None:
    from delta.tables import DeltaTable

    def run(key: str, value: str) -> None:
        known = {"spark": spark, "df": spark.range(1), "DeltaTable": DeltaTable}
        eval(way, {**known, **names.of_python(), "property": (key, value)})

    check_refused(spark, names, condition, run)


@pytest.mark.parametrize("value", ["maxcompute_delta", "maxcompute_dleta"])
@pytest.mark.parametrize("way", OPTION_WAYS)
def test_options_are_no_properties(spark: SparkSession, names: Names, way: str, value: str) -> None:
    df = spark.sql("SELECT 1 AS id, 'a' AS v")
    known = {"spark": spark, "df": df, "key": "interlock.policy", "value": value}
    with pytest.raises(InterlockError) as caught:
        exec(way, {**known, **names.of_python()})
    assert caught.value.getCondition() == "INTERLOCK_PROPERTY_AS_OPTION"
    check_nothing_left(spark, names)
