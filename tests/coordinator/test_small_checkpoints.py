"""Checkpoints of small tables: written without a Spark job, with the content of Delta's own."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from integration.compiled import compiled
from tests.kit.foreign import commit_by_hand
from tests.kit.snapshots import delta_log, forget_logs
from tests.kit.support import (
    Table,
    await_checkpoints,
    checkpoint_file,
    commit_file,
    confs,
    deltalake_rows,
    latest_version,
    log_of,
    make_table,
    rows,
)

PART_SIZE = "spark.databricks.delta.checkpoint.partSize"
INTERVAL = {"delta.checkpointInterval": "3"}
CHANGES = (
    "INSERT INTO {t} VALUES (4, 'd'), (5, NULL)",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET v = '' WHERE id = 2",
    "OPTIMIZE {t}",
    "INSERT INTO {t} VALUES (6, 'x/y %41 ü')",
    "DELETE FROM {t} WHERE id = 6",
    "INSERT INTO {t} VALUES (7, 'g')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')",
)
PARTITIONED = "(id INT, v STRING) USING delta PARTITIONED BY (v)"
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"columns": PARTITIONED},
    "vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "structs": {
        "properties": {
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        },
        "columns": PARTITIONED,
    },
    "columns by name": {"properties": {"delta.columnMapping.mode": "name"}},
}


def content(file: Path) -> tuple[Any, list[str]]:
    """Return the schema and the rows of a checkpoint, in one order."""
    read = pyarrow.parquet.read_table(file)
    return read.schema, sorted(json.dumps(row, default=str) for row in read.to_pylist())


def check_content(spark: SparkSession, table: Table, version: int) -> list[str]:
    schema, rows = content(checkpoint_file(table, version))
    wanted, theirs = content(of_delta(spark, table, version))
    assert schema == wanted
    assert set(rows) - set(theirs) == set(theirs) - set(rows) == set()
    assert len(rows) == len(theirs)
    return rows


def last_checkpoint(table: Table) -> dict[str, Any]:
    named: dict[str, Any] = json.loads((table.path / "_delta_log/_last_checkpoint").read_text())
    return named


def of_delta(spark: SparkSession, table: Table, version: int) -> Path:
    """Let Delta write the checkpoint of a version, beside the one that is there."""
    own = checkpoint_file(table, version).rename(table.path.with_name(f"own-{version}"))
    forget_logs(spark)
    delta_log(spark, table).createCheckpointAtVersion(version)
    theirs = checkpoint_file(table, version).rename(table.path.with_name(f"delta-{version}"))
    own.rename(checkpoint_file(table, version))
    return theirs


def run(spark: SparkSession, table: Table, statements: Sequence[str]) -> None:
    for statement in statements:
        spark.sql(statement.format(t=table))
        await_checkpoints(spark)


def jobs_without_group(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def run_in_group(spark: SparkSession, table: Table, statements: Sequence[str]) -> int:
    """Run statements; count the Spark jobs that are not theirs, but of checkpoints after them."""
    before = jobs_without_group(spark)
    spark.sparkContext.setJobGroup("statements", "")
    try:
        run(spark, table, statements)
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    return len(jobs_without_group(spark) - before)


@pytest.mark.variant_cases(but=["partitioned"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_content_is_that_of_deltas(spark: SparkSession, table_path: Path, kind: str) -> None:
    options = KINDS[kind]
    properties = {**INTERVAL, **options.get("properties", {})}
    table = make_table(spark, table_path, **{**options, "properties": properties})
    written = spark.createDataFrame([(8, "h")], "id INT, v STRING").write.format("delta")
    run(spark, table, CHANGES)
    (
        written.mode("append").option("txnAppId", "job").option("txnVersion", 7)
        .save(str(table.path))
    )  # fmt: skip
    run(spark, table, CHANGES)
    versions = [version for version in range(20) if checkpoint_file(table, version).exists()]
    assert versions[:5] == [3, 6, 9, 12, 15]
    for version in (versions[1], versions[-1]):
        rows = check_content(spark, table, version)
    last = last_checkpoint(table)
    assert (last["version"], last["size"]) == (versions[-1], len(rows))
    assert last["sizeInBytes"] == checkpoint_file(table, versions[-1]).stat().st_size
    assert last["numOfAddFiles"] == sum(json.loads(row)["add"] is not None for row in rows)


def test_no_spark_job(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, properties=INTERVAL)
    assert run_in_group(spark, table, CHANGES) == 0
    assert checkpoint_file(table, 6).exists()


def remove_files(table: Table, count: int) -> None:
    """Add files that nobody reads, and remove them: their tombstones stay in the checkpoints."""
    now = int(time.time() * 1000)
    file = {"partitionValues": {}, "size": 10, "dataChange": True}
    gone = [{"path": f"gone-{number:06}.parquet", **file} for number in range(count)]
    stats = json.dumps({"numRecords": 1})
    adds = [{"add": {**each, "modificationTime": now, "stats": stats}} for each in gone]
    removes = [
        {"remove": {**each, "deletionTimestamp": now, "extendedFileMetadata": True}}
        for each in gone
    ]
    commit_by_hand(table, "WRITE", *adds)
    commit_by_hand(table, "DELETE", *removes)


def test_tombstones_take_no_spark_job(spark: SparkSession, table_path: Path) -> None:
    """A small table that is rewritten often has many tombstones."""
    table = make_table(spark, table_path, properties=INTERVAL)
    remove_files(table, 7000)
    assert run_in_group(spark, table, CHANGES) == 0
    versions = [version for version in range(20) if checkpoint_file(table, version).exists()]
    assert versions == [6, 9, 12]
    assert len(check_content(spark, table, 12)) > 7000


def test_the_last_checkpoint_stays_the_newest(spark: SparkSession, table_path: Path) -> None:
    """A slow process finishes the checkpoint of an earlier version."""
    table = make_table(spark, table_path, properties=INTERVAL)
    run(spark, table, CHANGES[:5])
    assert last_checkpoint(table)["version"] == 6
    log = delta_log(spark, table)
    jvm: Any = spark._jvm
    early = log.getSnapshotAt(4, jvm.scala.Option.empty(), jvm.scala.Option.empty(), False)
    checkpoints = jvm.org.apache.spark.sql.delta.interlock.log.BackgroundCheckpoints
    checkpoints.write(spark._jsparkSession, early, jvm.scala.Option.empty())
    await_checkpoints(spark)
    check_content(spark, table, 4)
    assert last_checkpoint(table)["version"] == 6
    # A log that was put back has a name of a checkpoint that is not there.
    checkpoint_file(table, 6).unlink()
    checkpoints.write(spark._jsparkSession, early, jvm.scala.Option.empty())
    await_checkpoints(spark)
    assert last_checkpoint(table)["version"] == 4


def test_another_setting_makes_another_plan(spark: SparkSession, table_path: Path) -> None:
    kind = KINDS["structs"]
    table = make_table(
        spark, table_path, columns=kind["columns"], properties={**INTERVAL, **kind["properties"]}
    )
    key = "spark.databricks.delta.statsAsStructInCheckpoint.forcedDisabled"
    run(spark, table, CHANGES[:2])
    spark.conf.set(key, "true")
    try:
        run(spark, table, CHANGES[2:5])
        with_structs, without = (
            content(checkpoint_file(table, v))[0].field("add").type for v in (3, 6)
        )
    finally:
        spark.conf.unset(key)
    assert "stats_parsed" in str(with_structs)
    assert "stats_parsed" not in str(without)


@pytest.mark.variant_cases(but=["structs"])
@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_checkpoint_of_another_process(
    spark: SparkSession, table_path: Path, kind: str
) -> None:
    """If it lacks JSON statistics, Delta reads it by Spark jobs."""
    options = KINDS[kind]
    properties = {**INTERVAL, **options.get("properties", {})}
    made = make_table(spark, table_path, **{**options, "properties": properties})
    run(spark, made, CHANGES)
    table = Table(Path(shutil.copytree(made.path, made.path.with_name("copy"))))
    for version in range(5):
        (table.path / "_delta_log" / f"{version:020}.json").unlink()
    assert (run_in_group(spark, table, CHANGES[:4]) > 0) == (kind == "structs")
    assert run_in_group(spark, table, CHANGES[4:]) == 0
    for version in (9, 12, 15):
        check_content(spark, table, version)


def with_maps(rows: list[dict[str, Any]], *, are_empty: bool) -> list[dict[str, Any]]:
    """Fill optional maps of a checkpoint's rows, as other writers may."""
    for row in rows:
        if row["add"]:
            row["add"]["tags"] = [] if are_empty else None
        if row["remove"]:
            row["remove"]["extendedFileMetadata"] = False
            row["remove"]["partitionValues"] = [] if are_empty else None
    return rows


@pytest.mark.parametrize("are_empty", [True, False])
def test_empty_maps_of_a_checkpoint_stay_empty(
    spark: SparkSession, table_path: Path, are_empty: bool
) -> None:
    made = make_table(spark, table_path, properties=INTERVAL)
    run(spark, made, CHANGES[:5])
    table = Table(Path(shutil.copytree(made.path, made.path.with_name("copy"))))
    file = checkpoint_file(table, 6)
    read = pyarrow.parquet.read_table(file)
    rows = with_maps(read.to_pylist(), are_empty=are_empty)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=read.schema), file)
    file.with_name(f".{file.name}.crc").unlink()
    (table.path / "_delta_log/_last_checkpoint").unlink()
    assert run_in_group(spark, table, ["INSERT INTO {t} VALUES (9, 'z')"] * 3) == 0
    schema, after = content(checkpoint_file(table, 9))
    wanted, theirs = content(of_delta(spark, table, 9))
    assert (schema, after) == (wanted, theirs)


@pytest.mark.parametrize("setting", ["part size", "v2"])
def test_what_delta_writes_itself(spark: SparkSession, table_path: Path, setting: str) -> None:
    key = PART_SIZE
    policy = {"delta.checkpointPolicy": "v2"} if setting == "v2" else {}
    table = make_table(spark, table_path, properties={**INTERVAL, **policy})
    if setting == "part size":
        spark.conf.set(key, "2")
    try:
        assert run_in_group(spark, table, CHANGES[:3]) > 0
    finally:
        spark.conf.unset(key)
    assert len(list((table_path / "_delta_log").glob("*.checkpoint.*"))) + len(
        list((table_path / "_delta_log" / "_sidecars").glob("*"))
    ) > 1  # fmt: skip


def test_a_state_that_does_not_agree_with_the_checksum_is_not_used(
    spark: SparkSession, table_path: Path
) -> None:
    """Delta says what is wrong when it writes the checkpoint itself."""
    made = make_table(spark, table_path, properties=INTERVAL)
    table = Table(Path(shutil.copytree(made.path, made.path.with_name("copy"))))
    checksum = table.path / "_delta_log" / f"{2:020}.crc"
    claimed = json.loads(checksum.read_text())
    checksum.write_text(json.dumps(claimed | {"numFiles": 99}))
    with log_of(
        spark, "org.apache.spark.sql.delta.interlock.log.BackgroundCheckpoints"
    ) as warnings:
        run(spark, table, ["INSERT INTO {t} VALUES (4, 'd')"] * 3)
    assert "No checkpoint of version 3 " in warnings.toString()
    assert not checkpoint_file(table, 3).exists()


def test_a_commit_that_only_deltas_replay_reads(spark: SparkSession, table_path: Path) -> None:
    """delta-rs writes metrics that are not strings, which only Delta's replay can read."""
    table = make_table(spark, table_path, policy=None)
    info, *rest = commit_file(table, 2).read_text().splitlines()
    told = json.loads(info)
    told["commitInfo"]["operationMetrics"] = {"files": {"added": 1}}
    commit_file(table, 2).write_text("\n".join([json.dumps(told), *rest]) + "\n")
    (table_path / "_delta_log" / f".{commit_file(table, 2).name}.crc").unlink()
    forget_logs(spark)
    spark.sql(f"CALL interlock.set_policy('{table_path}', 'row_level')")
    first = latest_version(table) + 1
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    run(spark, table, ["INSERT INTO {t} VALUES (4, 'd')"] * 6)
    due = [version for version in range(first + 1, first + 7) if version % 3 == 0]
    assert [version for version in due if checkpoint_file(table, version).exists()] == due
    check_content(spark, table, due[-1])


@pytest.mark.variant_cases(
    but=["dropped-parts", "created again-small", "created again, as long-v2"]
)
@pytest.mark.parametrize("kind", ["small", "parts", "v2"])
@pytest.mark.parametrize("again", ["dropped", "created again", "created again, as long"])
def test_a_table_that_is_dropped_meanwhile(
    spark: SparkSession, tmp_path: Path, again: str, kind: str
) -> None:
    """A checkpoint under way brings the folder back for no dropped table, and enters no new log."""
    format_of_checkpoints = {"delta.checkpointPolicy": "v2"} if kind == "v2" else {}
    properties = {**INTERVAL, **format_of_checkpoints}
    table = make_table(spark, tmp_path / "table", properties=properties)
    successor = None if again == "dropped" else make_table(spark, tmp_path / "successor")
    content: tuple[tuple[int, str], ...] = ((1, "a"), (2, "b"), (3, "c"))
    if again.endswith("as long"):
        for n in range(4, 4 + 3 - latest_version(table)):
            spark.sql(f"INSERT INTO {successor} VALUES ({n}, 'y')")
            content = (*content, (n, "y"))
    swaps = compiled(spark, "Swaps")
    settings = {"fs.file.impl": "integration.Swaps", "fs.file.impl.disable.cache": "true"}
    if kind == "parts":
        settings[PART_SIZE] = "2"
    with confs(spark, settings):
        places = (table.path, tmp_path / "away", successor and successor.path)
        swaps.at(*(place and str(place) for place in places))
        for n in range(4, 4 + 3 - latest_version(table)):
            spark.sql(f"INSERT INTO {table} VALUES ({n}, 'x')")
        await_checkpoints(spark)
        assert not swaps.isDue()
    assert table.path.exists() == (successor is not None)
    if successor is not None:
        names = [file.name for file in (table.path / "_delta_log").iterdir()]
        assert [name for name in names if "checkpoint" in name] == []
        forget_logs(spark)
        assert rows(spark, table) == deltalake_rows(table) == content
        spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
        assert deltalake_rows(table)[-1] == (9, "z")
