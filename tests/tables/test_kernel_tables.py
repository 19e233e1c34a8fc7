"""`spark.databricks.delta.v2.enableMode=STRICT`: Delta writes through Kernel, which nobody judges.

A table with a policy or a coordinator is written through Delta's log all the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import interlock
import pytest
from interlock._session import DELTA_CATALOG
from interlock.errors import ConcurrentAppendError, ConcurrentDeleteReadError, InterlockError
from interlock.lab.example import PLAIN, Tables
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.gates import end_behind, phase_gate
from tests.kit.properties import operations
from tests.kit.spark_version import SPARK
from tests.kit.support import (
    Table,
    commit_info,
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    sql_race,
    tags,
)

STRICT = {"spark.databricks.delta.v2.enableMode": "STRICT"}
EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))


@pytest.fixture(autouse=True)
def _strict(spark: SparkSession) -> Iterator[None]:
    with set_for_now(spark, STRICT):
        yield


POLICY = {"interlock.policy": "row_level"}
COORDINATOR = {"interlock.coordinator": "filesystem"}


def name_of(spark: SparkSession, table: Table) -> str:
    """Give a table a name in the catalog."""
    name = f"kernel_{table.path.name}".replace("-", "_")
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table.path}'")
    return name


@pytest.mark.parametrize(
    ("properties", "named"),
    [(POLICY, True), (POLICY, False), (COORDINATOR, False)],
    ids=["by name", "by path", "only a coordinator"],
)
def test_statements_go_through_the_log(
    spark: SparkSession, tables: Tables, properties: dict[str, str], named: bool
) -> None:
    table = Table(tables.fresh(PLAIN, properties))
    name = name_of(spark, table) if named else str(table)
    spark.sql(f"INSERT INTO {name} VALUES (4, 'd')")
    spark.createDataFrame([(5, "e")], "id INT, v STRING").writeTo(name).append()
    spark.sql(f"UPDATE {name} SET v = 'E' WHERE id = 5")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('interlock.rerun.maxRuns' = '2')")
    assert operations(table, since=3) == ["WRITE", "WRITE", "UPDATE", "SET TBLPROPERTIES"]
    assert not any(version.foreign for version in interlock.table(spark, name).history())
    assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (4, "d"), (5, "E"))
    assert rows(spark, name, version=3) == (*EXAMPLE, (4, "d"))


FIRST_POLICY = {
    "ALTER TABLE": "ALTER TABLE {} SET TBLPROPERTIES ('interlock.policy' = 'row_level')",
    "set_policy": "CALL interlock.set_policy('{}', 'row_level')",
}


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by path"])
@pytest.mark.parametrize("way", FIRST_POLICY)
def test_a_table_gets_its_first_policy(
    spark: SparkSession, tables: Tables, way: str, named: bool
) -> None:
    table = Table(tables.fresh(PLAIN, {"delta.enableDeletionVectors": "true"}))
    name = name_of(spark, table) if named else str(table)
    spark.sql(FIRST_POLICY[way].format(name))
    assert interlock.table(spark, name).policy == "row_level"
    spark.sql(f"UPDATE {name} SET v = 'A' WHERE id = 1")
    assert tags(table, latest_version(table))["interlock.class"] == "MUTATE"
    assert rows(spark, table) == deltalake_rows(table) == ((1, "A"), *EXAMPLE[1:])


STOCK_CATALOG = {"spark.sql.catalog.spark_catalog": DELTA_CATALOG}


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by path"])
def test_another_catalog_changes_no_property_beside_the_log(
    spark: SparkSession, tables: Tables, named: bool
) -> None:
    table = Table(tables.fresh(PLAIN, {**POLICY, "interlock.exclusive": "true"}))
    name = name_of(spark, table) if named else str(table)
    last = latest_version(table)
    other = spark.newSession()
    policy = "maxcompute_transactional"
    set_policy = f"CALL interlock.set_policy('{name}', '{policy}')"
    with set_for_now(other, {**STRICT, **STOCK_CATALOG}):
        for statement in (
            f"ALTER TABLE {name} SET TBLPROPERTIES ('interlock.policy' = '{policy}')",
            f"ALTER TABLE {name} UNSET TBLPROPERTIES ('interlock.policy')",
            f"ALTER TABLE {name} DROP FEATURE interlock",
            # Before 4.2 Spark finds no table by its path in the procedure.
            *([set_policy] if named or SPARK >= (4, 2) else []),
        ):
            with pytest.raises(InterlockError) as caught:
                other.sql(statement)
            assert caught.value.getCondition() == "INTERLOCK_PROPERTY_NEEDS_CATALOG"
        assert latest_version(table) == last
        other.sql(f"CALL interlock.remove_policy('{name}')")
    assert interlock.table(spark, name).policy is None


def new_row(session: SparkSession) -> DataFrame:
    return session.createDataFrame([(4, "d")], "id INT, v STRING")


WRITES: dict[str, Callable[[SparkSession, str], object]] = {
    "INSERT INTO": lambda other, name: other.sql(f"INSERT INTO {name} VALUES (4, 'd')"),
    "INSERT OVERWRITE": lambda other, name: other.sql(f"INSERT OVERWRITE {name} VALUES (4, 'd')"),
    "REPLACE WHERE": lambda other, name: other.sql(
        f"INSERT INTO {name} REPLACE WHERE id = 4 VALUES (4, 'd')"
    ),
    "writeTo": lambda other, name: new_row(other).writeTo(name).append(),
    "saveAsTable": lambda other, name: (
        new_row(other).write.format("delta").mode("append").saveAsTable(name)
    ),
    "insertInto": lambda other, name: new_row(other).write.insertInto(name),
}


@pytest.mark.parametrize("way", WRITES)
def test_in_another_catalog_nothing_is_written_past_the_policy(
    spark: SparkSession, tables: Tables, way: str
) -> None:
    table = Table(tables.fresh(PLAIN, POLICY))
    name = name_of(spark, table)
    last = latest_version(table)
    other = spark.newSession()
    with set_for_now(other, {**STRICT, **STOCK_CATALOG}), pytest.raises(PySparkException) as caught:
        WRITES[way](other, name)
    # Delta Kernel does not overwrite.
    does_append = way not in ("INSERT OVERWRITE", "REPLACE WHERE")
    expected = (
        "INTERLOCK_WRITE_THROUGH_KERNEL" if does_append else "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    )
    assert caught.value.getCondition() == expected
    assert latest_version(table) == last
    assert rows(spark, table) == deltalake_rows(table) == EXAMPLE


STREAM = """
import sys
import interlock
from interlock._session import DELTA_CATALOG
from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

table, checkpoint = sys.argv[1:]
builder = interlock.configure(SparkSession.builder.config(map=SMALL_SESSION))
builder.config("spark.sql.catalog.spark_catalog", DELTA_CATALOG)
spark = builder.config("spark.databricks.delta.v2.enableMode", "STRICT").getOrCreate()
rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
written = rate.selectExpr("4 AS id", "'d' AS v").writeStream.format("delta")
try:
    written.option("checkpointLocation", checkpoint).toTable(table)
except interlock.InterlockError as error:
    print(error.getCondition())
"""


def test_in_a_session_of_another_catalog_a_stream_is_refused(
    tables: Tables, tmp_path: Path
) -> None:
    table = Table(tables.fresh(PLAIN, POLICY))
    last = latest_version(table)
    command = [sys.executable, "-c", STREAM, str(table), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines() == ["INTERLOCK_WRITE_THROUGH_KERNEL"]
    assert latest_version(table) == last


def test_where_only_the_session_has_another_catalog_a_stream_goes_through_the_log(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    table = Table(tables.fresh(PLAIN, POLICY))
    name = name_of(spark, table)
    other = spark.newSession()
    with set_for_now(other, {**STRICT, **STOCK_CATALOG}):
        rate = other.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        written = rate.selectExpr("4 AS id", "'d' AS v").writeStream.format("delta")
        started = written.trigger(availableNow=True).option("checkpointLocation", str(tmp_path))
        started.toTable(name).awaitTermination()
    assert tags(table, latest_version(table))["interlock.policy"] == "row_level"
    assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (4, "d"))


@pytest.mark.parametrize("cached", [False, True], ids=["read", "cached"])
def test_what_is_read_in_another_catalog_counts_as_read(
    spark: SparkSession, tables: Tables, cached: bool
) -> None:
    """An append by path is judged by the policy, though Kernel reads its source."""
    table = Table(tables.fresh(PLAIN, {"interlock.policy": "serializable"}))
    name = name_of(spark, table)
    other = spark.newSession()
    with set_for_now(other, {**STRICT, **STOCK_CATALOG}):
        read = other.table(name).where("id = 3")
        kept = read.cache() if cached else read

        def append() -> None:
            kept.write.format("delta").mode("append").save(str(table.path))

        error = end_behind(
            other, append, lambda: spark.sql(f"DELETE FROM {table} WHERE id = 3"), phase_gate
        )
        kept.unpersist()
    assert isinstance(error, ConcurrentDeleteReadError)
    assert rows(spark, table) == deltalake_rows(table) == EXAMPLE[:2]


def test_the_feature_of_a_table_without_a_policy_is_dropped_in_the_log(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy=None)
    name = name_of(spark, table)
    last = latest_version(table)
    spark.sql(f"ALTER TABLE {name} DROP FEATURE interlock")
    assert operations(table, since=last + 1) == ["UNSET TBLPROPERTIES"]


def test_properties_that_a_policy_has_left_are_unset_in_the_log(
    spark: SparkSession, tables: Tables
) -> None:
    table = Table(tables.fresh(PLAIN, {**POLICY, "interlock.rerun.maxRuns": "3"}))
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
    last = latest_version(table)
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.rerun.maxRuns')")
    assert operations(table, since=last + 1) == ["UNSET TBLPROPERTIES"]
    with pytest.raises(InterlockError) as caught:
        spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.nonsense')")
    assert caught.value.getCondition() == "INTERLOCK_UNKNOWN_PROPERTY"


def test_statements_of_interlock_on_a_table_without_a_policy(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy=None)
    history = spark.sql(f"SHOW HISTORY FOR TABLE {table}").collect()
    assert [row.version for row in history] == list(range(latest_version(table), -1, -1))
    for statement, condition in {
        f"ALTER TABLE {table} COMPACT MINOR": "INTERLOCK_POLICY_REQUIRED",
        f"SELECT * FROM {table} VERSION BETWEEN 1 AND 1": "INTERLOCK_ROW_TRACKING_REQUIRED",
    }.items():
        with pytest.raises(InterlockError) as caught:
            spark.sql(statement)
        assert caught.value.getCondition() == condition


def test_statements_of_interlock_in_another_catalog(spark: SparkSession, example: Table) -> None:
    other = spark.newSession()
    with set_for_now(other, {**STRICT, **STOCK_CATALOG}):
        last = latest_version(example)
        changed = rows(other, f"{example} VERSION BETWEEN {last} AND {last}")
        assert changed == rows(spark, f"{example} VERSION BETWEEN {last} AND {last}")
        other.sql(f"ALTER TABLE {example} COMPACT MAJOR")
        assert tags(example, latest_version(example))["interlock.class"] == "COMPACT_MAJOR"
        assert rows(other, example) == deltalake_rows(example) == EXAMPLE
        other.sql(f"TRUNCATE TABLE {example}")
    assert tags(example, latest_version(example))["interlock.class"] == "OVERWRITE"
    assert rows(spark, example) == deltalake_rows(example) == ()


def test_a_version_in_the_path(spark: SparkSession, example: Table) -> None:
    last = latest_version(example)
    spark.sql(f"INSERT INTO {example} VALUES (4, 'd')")
    assert rows(spark, f"delta.`{example.path}@v{last}`") == EXAMPLE
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO delta.`{example.path}@v{last}` VALUES (5, 'e')")
    assert rows(spark, example) == deltalake_rows(example) == (*EXAMPLE, (4, "d"))


def test_the_policy_judges(spark: SparkSession, example: Table) -> None:
    inserts = (f"INSERT INTO {example} VALUES ({n}, 'x')" for n in (4, 5))
    first, second = sql_race(spark, example, *inserts)
    assert first.ok
    assert isinstance(second.error, ConcurrentAppendError)
    assert rows(spark, example) == (*EXAMPLE, (4, "x"))


def test_a_table_without_a_policy_is_left_to_delta(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy=None)
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert "Kernel" in commit_info(table, latest_version(table))["engineInfo"]
