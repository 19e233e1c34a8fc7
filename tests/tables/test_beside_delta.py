"""A policy beside what Delta permits: properties that users set, and tables made meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from interlock.errors import ConflictError, InterlockError, ProtocolChangedError
from pyspark.sql import SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.own_policy import under
from tests.kit.properties import latest
from tests.kit.support import Table, commit, deltalake_rows, make_table, race, rows, versions

SYMLINKS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
WITH_VECTORS = ("row_level", "row_serializable")
# What Delta permits on tables without deletion vectors only.
WITHOUT_VECTORS = [
    SYMLINKS,
    {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
    {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    {"delta.universalFormat.enabledFormats": "hudi"},
]
# Properties that people set, which must work with every policy.
USUAL = [
    {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"},
    {
        "delta.minReaderVersion": "2",
        "delta.minWriterVersion": "5",
        "delta.columnMapping.mode": "id",
    },
    {"delta.appendOnly": "false", "delta.enableChangeDataFeed": "true"},
    {"delta.checkpointPolicy": "v2", "delta.enableTypeWidening": "true"},
    {"delta.feature.timestampNtz": "supported", "delta.feature.variantType": "supported"},
]


def listed(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def refused(spark: SparkSession, statement: str, policy: str, properties: dict[str, str]) -> None:
    with pytest.raises(InterlockError) as caught:
        spark.sql(statement)
    assert caught.value.getCondition() == "INTERLOCK_NO_DELETION_VECTORS"
    told = caught.value.getMessageParameters()  # type: ignore[attr-defined]
    assert (told["policy"], properties[told["property"]]) == (policy, told["value"])
    assert told["others"] == (
        "maxcompute_delta, maxcompute_transactional, maxcompute_standard, serializable, "
        "write_serializable"
    )


@pytest.mark.parametrize("properties", WITHOUT_VECTORS, ids=lambda wanted: next(iter(wanted)))
def test_a_property_that_needs_a_table_without_deletion_vectors(
    spark: SparkSession, table_path: Path, properties: dict[str, str]
) -> None:
    table = Table(table_path)
    create = f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES (%s)"
    for policy in WITH_VECTORS:
        wanted = {"interlock.policy": policy, **properties}
        refused(spark, create % listed(wanted), policy, properties)
    make_table(spark, table_path, policy="row_level", columns="(id INT) USING delta", statements=())
    refused(
        spark,
        f"ALTER TABLE {table} SET TBLPROPERTIES ({listed(properties)})",
        "row_level",
        properties,
    )
    assert versions(table) == [0]


def test_a_first_policy_beside_symlinks(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy=None, properties=SYMLINKS)
    refused(spark, f"ALTER TABLE {table} SET {under('row_level')}", "row_level", SYMLINKS)
    spark.sql(f"ALTER TABLE {table} SET {under('write_serializable')}")
    spark.sql(f"UPDATE {table} SET v = 'U' WHERE id = 1")
    assert rows(spark, table) == deltalake_rows(table) == ((1, "U"), (2, "b"), (3, "c"))
    assert (table_path / "_symlink_format_manifest" / "manifest").exists()


@pytest.mark.parametrize(
    ("policy", "properties"),
    [("maxcompute_delta", SYMLINKS), ("row_level", {**SYMLINKS, **NO_VECTORS})],
)
def test_no_rebase_writes_vectors_beside_symlinks(
    spark: SparkSession, table_path: Path, policy: str, properties: dict[str, str]
) -> None:
    """Readers of a symlink manifest would see rows that a deletion vector marks as deleted."""
    table = make_table(spark, table_path, policy=policy, properties=properties)
    optimize, delete = race(spark, f"OPTIMIZE {table}", f"DELETE FROM {table} WHERE id = 1")
    assert optimize.ok
    assert isinstance(delete.error, ConflictError)
    assert f"{next(iter(SYMLINKS))} excludes deletion vectors" in str(delete.error)
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert not any(
        action.get("add", {}).get("deletionVector")
        for version in versions(table)
        for action in commit(table, version)
    )
    (listed,) = (table_path / "_symlink_format_manifest" / "manifest").read_text().split()
    assert spark.read.parquet(listed).count() == 2


@pytest.mark.parametrize("kind", ["update", "update-by-subquery", "delete", "merge"])
def test_a_delta_table_that_was_made_before_the_policy(
    spark: SparkSession, table_path: Path, kind: str
) -> None:
    table = make_table(spark, table_path, policy=None)
    before = DeltaTable.forPath(spark, str(table_path))
    spark.sql(f"ALTER TABLE {table} SET {under('row_level')}")
    source = spark.sql("SELECT 1 AS id, 'M' AS v").alias("s")

    def change(target: DeltaTable) -> None:
        if kind == "delete":
            target.delete("id = 1")
        elif kind == "merge":
            merge = target.alias("t").merge(source, "t.id = s.id")
            merge.whenMatchedUpdateAll().execute()
        else:
            newest = f"(SELECT max(v) FROM {table})" if kind != "update" else "'U'"
            target.update("id = 1", {"v": newest})

    with pytest.raises(InterlockError) as caught:
        change(before)
    assert caught.value.getCondition() == "INTERLOCK_MADE_BEFORE_POLICY"
    assert caught.value.getMessageParameters()["policy"] == "row_level"  # type: ignore[attr-defined]
    change(DeltaTable.forPath(spark, str(table_path)))
    first = {"delete": (), "merge": ((1, "M"),), "update": ((1, "U"),)}.get(kind, ((1, "c"),))
    assert rows(spark, table) == deltalake_rows(table) == (*first, (2, "b"), (3, "c"))


@pytest.mark.parametrize("properties", USUAL, ids=lambda wanted: next(iter(wanted)))
def test_properties_that_work_beside_a_policy(
    spark: SparkSession, table_path: Path, properties: dict[str, str]
) -> None:
    table = make_table(spark, table_path, policy="row_level", properties=properties)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({listed(properties)})")
    spark.sql(f"UPDATE {table} SET v = 'U' WHERE id = 1")
    assert rows(spark, table) == ((1, "U"), (2, "b"), (3, "c"))
    assert latest(table).policy == "row_level"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE {t} USING delta {p} AS SELECT 1 AS id",
        None,
    ],
)
def test_two_jobs_create_one_table(
    spark: SparkSession, table_path: Path, statement: str | None
) -> None:
    """The later one is told what happened, and to run again; a new run commits."""
    table = Table(table_path)

    def create(session: SparkSession) -> None:
        if statement is not None:
            session.sql(statement.format(t=table, p=under("row_level")))
        else:
            session.sql("SELECT 1 AS id").write.format("delta").mode("append").save(str(table_path))

    with set_for_now(spark, {"spark.interlock.defaultPolicy": "row_level"}):
        first, second = race(spark, create, create)
    assert first.ok
    assert isinstance(second.error, ProtocolChangedError)
    assert second.error.getCondition() == "DELTA_PROTOCOL_CHANGED"
    assert f"Another job created {table}" in str(second.error)
    assert "Run the statement again" in str(second.error)
    create(spark)
    assert versions(table) == [0, 1]
