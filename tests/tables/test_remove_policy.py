"""`CALL interlock.remove_policy`: the way back to plain Delta.

Afterwards two writers without Interlock write the table: stock Delta, in a process of its own, and
`deltalake`, which refuses tables with a feature that it does not know.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import interlock
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.support import (
    Table,
    commit,
    commit_info,
    deltalake_rows,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    versions,
)

VECTORS = {"delta.enableDeletionVectors": "true"}
DROPPED = [("rowTracking", "dropped"), ("inCommitTimestamp", "dropped")]
DOMAINS = ("domainMetadata", "dropped")
KEEPS_VECTORS = ("deletionVectors", "kept")
EXAMPLE: Rows = ((1, "a"), (2, "b"), (3, "c"))


def remove(spark: SparkSession, table: Table, *keep: str) -> list[tuple[str, str]]:
    """Remove the policy; what became of what, without the reasons."""
    removed = interlock.table(spark, str(table.path)).remove_policy(keep=keep)
    return [(record.what, record.outcome) for record in removed]


def ours(table: Table) -> list[tuple[str, str]]:
    return [("interlock.policy", "removed"), ("interlock.policy.digest", "removed")]


def features(spark: SparkSession, table: Table) -> list[str]:
    (row,) = spark.sql(f"DESCRIBE DETAIL {table}").collect()
    return [name for name in row["tableFeatures"] if name not in ("appendOnly", "invariants")]


def row_of(number: int, text: str) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int32()), "v": [text]})


def check_all_write(spark: SparkSession, stock: DriverProcess, table: Table, before: Rows) -> None:
    """Let stock Delta and `deltalake` change what the policy's jobs wrote, and this session too."""
    assert rows(spark, table) == deltalake_rows(table) == before
    for statement in (
        f"INSERT INTO {table} VALUES (10, 'stock')",
        f"UPDATE {table} SET v = 'S' WHERE id = 1",
    ):
        end = stock.run(statement)
        assert end.error is None, end.message
    write_deltalake(str(table.path), row_of(20, "delta-rs"), mode="append")
    DeltaTable(str(table.path)).update(updates={"v": "'R'"}, predicate="id = 3")
    spark.sql(f"INSERT INTO {table} VALUES (30, 'us')")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    changed: Rows = ((1, "S"), (3, "R"))
    kept = [row for row in before if row[0] not in (1, 2, 3)]
    after = in_order((*changed, *kept, (10, "stock"), (20, "delta-rs"), (30, "us")))
    assert rows(spark, table) == deltalake_rows(table) == after


@pytest.mark.variant_cases(but=["row_level"])
@pytest.mark.parametrize("policy", ["row_level", "maxcompute_delta", "serializable"])
def test_everybody_may_write_afterwards(
    spark: SparkSession, stock: DriverProcess, table_path: Path, policy: str
) -> None:
    table = make_table(spark, table_path, policy=policy)
    spark.sql(f"UPDATE {table} SET v = 'B' WHERE id = 2")
    spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    with pytest.raises(CommitFailedError, match="features"):
        write_deltalake(str(table.path), row_of(9, "x"), mode="append")
    last = latest_version(table)
    read = [rows(spark, table, version=n) for n in range(1, last + 1)]
    vectors = [] if policy == "serializable" else [KEEPS_VECTORS]
    assert remove(spark, table) == [*ours(table), *DROPPED, DOMAINS, *vectors]
    assert features(spark, table) == [name for name, _ in vectors]
    left = {row["key"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert not [key for key in left if "interlock" in key or "row" in key.lower()]
    check_all_write(spark, stock, table, ((1, "a"), (3, "c")))
    for version, found in enumerate(read, start=1):
        assert rows(spark, table, version=version) == found
        assert deltalake_rows(table, version=version) == found


def test_a_second_call_does_nothing(spark: SparkSession, example: Table) -> None:
    remove(spark, example)
    last = latest_version(example)
    assert remove(spark, example) == [KEEPS_VECTORS]
    assert latest_version(example) == last


def test_a_table_without_a_policy_keeps_what_it_uses(spark: SparkSession, table_path: Path) -> None:
    tracked = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}
    table = make_table(spark, table_path, policy=None, properties=tracked)
    removed = interlock.table(spark, str(table.path)).remove_policy()
    assert [(record.what, record.outcome, record.why) for record in removed] == [
        ("rowTracking", "kept", "delta.enableRowTracking is true, and no policy requires it"),
        (
            "inCommitTimestamp",
            "kept",
            "delta.enableInCommitTimestamps is true, and no policy requires it",
        ),
        ("domainMetadata", "kept", "needed by rowTracking"),
    ]
    assert latest_version(table) == 2


@pytest.mark.variant
def test_features_can_be_kept(spark: SparkSession, example: Table) -> None:
    """Row ids stay; features that were kept are left alone by a later call too."""
    ids = spark.sql(f"SELECT id, _metadata.row_id FROM {example} ORDER BY id").collect()
    kept = [("rowTracking", "kept"), ("inCommitTimestamp", "dropped"), ("domainMetadata", "kept")]
    assert remove(spark, example, "rowTracking") == [*ours(example), *kept, KEEPS_VECTORS]
    assert spark.sql(f"SELECT id, _metadata.row_id FROM {example} ORDER BY id").collect() == ids
    assert remove(spark, example) == [
        entry for entry in [*kept, KEEPS_VECTORS] if entry[1] == "kept"
    ]


@pytest.mark.parametrize("keep", ["array('deletionVectors')", "array('x', NULL)", "array(NULL)"])
def test_other_features_cannot_be_named(spark: SparkSession, example: Table, keep: str) -> None:
    with pytest.raises(interlock.UsageError) as caught:
        spark.sql(f"CALL interlock.remove_policy('{example.path}', {keep})")
    assert caught.value.condition == "INTERLOCK_INVALID_ARGUMENT"
    assert interlock.table(spark, str(example.path)).policy == "maxcompute_delta"


@pytest.mark.variant
def test_the_protection_of_the_history(
    spark: SparkSession, stock: DriverProcess, table_path: Path
) -> None:
    """DROP FEATURE leaves `checkpointProtection`, which goes once the history is gone."""
    table = make_table(spark, table_path, policy="row_level")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
    spark.sql(f"ALTER TABLE {table} DROP FEATURE deletionVectors")
    protected = latest_version(table)
    first = interlock.table(spark, str(table.path)).remove_policy()
    why = {record.what: record.why for record in first}
    assert str(why["checkpointProtection"]).startswith(
        f"protects the versions before {protected}: "
    )
    assert rows(spark, table, version=2) == EXAMPLE
    log = table.path / "_delta_log"
    for file in log.iterdir():
        number = file.name.lstrip(".").split(".")[0]
        if number.isdigit() and int(number) < protected:
            file.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    spark.sql(
        f"ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.enableRowTracking', "
        "'delta.enableInCommitTimestamps')"
    )
    assert remove(spark, table) == [*DROPPED, DOMAINS, ("checkpointProtection", "dropped")]
    check_all_write(spark, stock, table, ((1, "a"), (3, "c")))


@pytest.mark.variant
def test_a_call_goes_on_where_another_ended(
    spark: SparkSession, stock: DriverProcess, table_path: Path, tmp_path: Path
) -> None:
    """A call that died after any of its commits is completed by the next call."""
    table = make_table(spark, table_path, policy="row_level")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    before = latest_version(table)
    remove(spark, table)
    made = versions(table)[before + 1 :]
    operations = [commit_info(table, version)["operation"] for version in made]
    assert operations == [
        "UNSET TBLPROPERTIES",
        "SET TBLPROPERTIES",
        "ROW TRACKING UNBACKFILL",
        "DROP FEATURE",
        "DROP FEATURE",
        "DROP FEATURE",
    ]
    for last in made[:-1]:
        half = Table(tmp_path / f"until-{last}")
        shutil.copytree(table.path, half.path)
        for file in (half.path / "_delta_log").iterdir():
            number = file.name.lstrip(".").split(".")[0]
            if number.isdigit() and int(number) > last:
                file.unlink()
        assert rows(spark, half) == deltalake_rows(half) == ((1, "a"), (3, "c"))
        remove(spark, half)
        assert features(spark, half) == ["deletionVectors"], f"after version {last}"
        end = stock.run(f"INSERT INTO {half} VALUES (10, 'stock')")
        assert end.error is None, end.message
        write_deltalake(str(half.path), row_of(20, "delta-rs"), mode="append")
        assert deltalake_rows(half) == ((1, "a"), (10, "stock"), (20, "delta-rs"), (3, "c"))


def test_a_job_that_read_the_table_before(spark: SparkSession, example: Table) -> None:
    """It fails and leaves nothing behind; run again it succeeds."""

    def removal(_: SparkSession) -> None:
        remove(spark, example)

    insert = f"INSERT INTO {example} VALUES (4, 'd')"
    done, job = race(spark, python_job("removal", removal), sql_job(insert))
    assert done.error is None
    assert job.held
    assert isinstance(job.error, interlock.MetadataChangedError)
    spark.sql(insert)
    assert rows(spark, example) == deltalake_rows(example) == (*EXAMPLE, (4, "d"))


def live(table: Table) -> list[dict[str, object]]:
    """Return what the log says of the live files."""
    found: dict[str, dict[str, object]] = {}
    for version in versions(table):
        actions = commit(table, version)
        for action in actions:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                found[action["add"]["path"]] = action["add"]
    return list(found.values())
