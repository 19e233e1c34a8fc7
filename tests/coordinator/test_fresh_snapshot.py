"""The snapshots that transactions start from, which are made without listing the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.foreign import added, commit_by_hand, remove
from tests.kit.gates import end_behind, phase_gate
from tests.kit.snapshots import begin, check_anew, delta_log, forget_logs, told
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
    put_back,
    rows,
    unlistable,
)

INTERVAL = {"delta.checkpointInterval": "4"}


CHANGES = (
    "INSERT INTO {t} VALUES (4, 'd'), (5, 'e')",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET v = 'u' WHERE id = 2",
    "ALTER TABLE {t} ADD COLUMNS (w INT)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')",
    "ALTER TABLE {t} COMPACT MAJOR",
    "INSERT OVERWRITE {t} VALUES (8, 'h', 1)",
)


@pytest.mark.variant_cases(but=["true"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_it_is_what_delta_reads(spark: SparkSession, table_path: Path, vectors: str) -> None:
    properties = {**INTERVAL, "delta.enableDeletionVectors": vectors}
    table = make_table(spark, table_path, policy="row_level", properties=properties)
    before = delta_log(spark, table)
    for change in CHANGES:
        spark.sql(change.format(t=table))
        own, has_looked = begin(spark, delta_log(spark, table))
        assert not has_looked
        other, has_looked = begin(spark, before)
        assert not has_looked
        assert told(own) == told(other)
        check_anew(spark, table, own)
    assert rows(spark, table) == deltalake_rows(table) == ((8, "h", 1),)


def test_an_insert_does_not_list_the_log(
    spark: SparkSession, stock: DriverProcess, example: Table
) -> None:
    expected = set(rows(spark, example))
    for n in (4, 6):
        assert stock.run(f"INSERT INTO {example} VALUES ({n}, 'z')").error is None
        with unlistable(example):
            spark.sql(f"INSERT INTO {example} VALUES ({n + 1}, 'z')")
        expected |= {(n, "z"), (n + 1, "z")}
        assert set(rows(spark, example)) == expected == set(deltalake_rows(example))
    check_anew(spark, example, delta_log(spark, example).unsafeVolatileSnapshot())


def test_later_checkpoints_are_used(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, properties=INTERVAL)
    before = delta_log(spark, table)
    for n in range(3):
        for _ in range(4):
            spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
        await_checkpoints(spark)
        with unlistable(table):
            snapshot, has_looked = begin(spark, before)
        assert not has_looked
        assert snapshot.version() == latest_version(table) == 4 * n + 6
        forget_logs(spark)
    assert snapshot.logSegment().deltas().size() <= 5
    check_anew(spark, table, snapshot)


def test_a_log_with_a_checkpoint_of_each_version_stays_short(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, properties={"delta.checkpointInterval": "1"})
    log, lengths = delta_log(spark, table), []
    for _ in range(25):
        spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
        lengths.append(log.unsafeVolatileSnapshot().logSegment().deltas().size())
        await_checkpoints(spark)
    assert max(lengths) <= 22
    assert lengths[-1] < 10
    check_anew(spark, table, log.unsafeVolatileSnapshot())


@pytest.mark.variant_cases(but=["in parts"])
@pytest.mark.parametrize("file", ["in parts", "empty beside parts", "empty"])
def test_delta_looks_for_the_files_of_other_checkpoints(
    spark: SparkSession, table_path: Path, file: str
) -> None:
    """An unsynced file can be empty after a power failure."""
    table = make_table(spark, table_path, properties=INTERVAL)
    before = delta_log(spark, table)
    part_size = "2" if "parts" in file else "1000"
    with confs(spark, {"spark.databricks.delta.checkpoint.partSize": part_size}):
        for _ in range(4):
            spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
        await_checkpoints(spark)
    if "empty" in file:
        checkpoint_file(table, 4).write_bytes(b"")
    snapshot, has_looked = begin(spark, before)
    assert not has_looked
    files = snapshot.checkpointProvider().topLevelFiles().size()
    assert (files > 1, files > 0) == (("parts" in file), (file != "empty"))
    check_anew(spark, table, snapshot)


def test_a_checkpoint_of_the_newest_version(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, properties=INTERVAL)
    before = delta_log(spark, table)
    forget_logs(spark)
    for _ in range(2):
        spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
    await_checkpoints(spark)
    assert checkpoint_file(table, 4).exists()
    for _ in range(2):
        snapshot, has_looked = begin(spark, before)
        assert not has_looked
    assert snapshot.version() == 4
    check_anew(spark, table, snapshot)


def test_a_commit_after_a_version_of_which_only_the_checkpoint_was_read(
    spark: SparkSession, table_path: Path
) -> None:
    """The commit checks that the table is still the same without listing the log."""
    table = make_table(spark, table_path, properties=INTERVAL)
    for n in range(4, 6):
        spark.sql(f"INSERT INTO {table} VALUES ({n}, 'z')")
    await_checkpoints(spark)
    forget_logs(spark)
    assert delta_log(spark, table).unsafeVolatileSnapshot().logSegment().deltas().isEmpty()
    insert = f"INSERT INTO {table} VALUES (6, 'z')"
    far = commit_file(table, 10**6)
    assert end_behind(spark, lambda: spark.sql(insert), far.touch, phase_gate) is None
    far.unlink()
    assert latest_version(table) == 5
    expected = ((1, "a"), (2, "b"), (3, "c"), (4, "z"), (5, "z"), (6, "z"))
    assert tuple(sorted(rows(spark, table))) == tuple(sorted(deltalake_rows(table))) == expected


def test_a_process_that_only_appends_uses_them_too(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, properties=INTERVAL)
    for n in range(10):
        row = spark.createDataFrame([(n, "z")], "id INT, v STRING")
        row.write.format("delta").mode("append").save(str(table.path))
        await_checkpoints(spark)
    snapshot = delta_log(spark, table).unsafeVolatileSnapshot()
    assert snapshot.version() == 12
    assert snapshot.logSegment().deltas().size() <= 5
    check_anew(spark, table, snapshot)


def test_no_files_are_compared_by_a_job(
    spark: SparkSession, stock: DriverProcess, example: Table
) -> None:
    """Where a time zone is not UTC, Delta would compare a checksum with the state by a job."""
    jvm: Any = spark._jvm
    tracker = spark.sparkContext.statusTracker()
    log = delta_log(spark, example)
    with confs(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
        assert stock.run(f"INSERT INTO {example} VALUES (4, 'z')").error is None
        before = set(tracker.getJobIdsForGroup(None))
        snapshot, has_looked = begin(spark, log)
        assert not has_looked
        assert set(tracker.getJobIdsForGroup(None)) == before
    check_anew(spark, example, snapshot)


def test_after_many_commits_delta_lists_the_log(spark: SparkSession, example: Table) -> None:
    before = delta_log(spark, example)
    forget_logs(spark)
    for n in range(21):
        spark.sql(f"ALTER TABLE {example} SET TBLPROPERTIES ('x' = '{n}')")
    snapshot, has_looked = begin(spark, before)
    assert has_looked
    check_anew(spark, example, snapshot)


def test_the_commit_of_another_process(
    spark: SparkSession, stock: DriverProcess, example: Table
) -> None:
    for writer in range(3):
        log = delta_log(spark, example)
        assert stock.run(f"INSERT INTO {example} VALUES ({writer + 4}, 'z')").error is None
        snapshot, has_looked = begin(spark, log)
        assert not has_looked
        check_anew(spark, example, snapshot)


def test_a_commit_without_a_checksum(spark: SparkSession, example: Table) -> None:
    """After another writer's commit without a checksum, Delta computes the state."""
    log = delta_log(spark, example)
    (add,) = added(example, 1)
    commit_by_hand(example, "DELETE", remove(add))
    snapshot, has_looked = begin(spark, log)
    assert has_looked
    check_anew(spark, example, snapshot)


def test_the_snapshot_after_a_commit_without_a_checksum(
    spark: SparkSession, tmp_path: Path, example: Table
) -> None:
    """Interlock makes it: Delta would list the log while others commit."""
    plain = make_table(spark, tmp_path / "plain", policy=None)
    made_by_delta = []
    for table in (plain, example):
        with (
            confs(spark, {"spark.databricks.delta.incremental.commit.enabled": "false"}),
            log_of(spark, "org.apache.spark.sql.delta.DeltaLog", level="INFO") as written,
        ):
            spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        made_by_delta.append(str(written).count("for commit version"))
    assert made_by_delta == [1, 0]
    assert commit_file(example, 3).with_suffix(".crc").exists()
    assert rows(spark, example) == deltalake_rows(example)


def test_an_own_commit_whose_checksum_is_on_its_way(spark: SparkSession, example: Table) -> None:
    log = delta_log(spark, example)
    forget_logs(spark)
    spark.sql(f"INSERT INTO {example} VALUES (4, 'd')")
    commit_file(example, 3).with_suffix(".crc").unlink()
    snapshot, has_looked = begin(spark, log)
    assert not has_looked
    check_anew(spark, example, snapshot)


def end_of_policy(spark: SparkSession, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")


def put_another_in_its_place(spark: SparkSession, table: Table) -> None:
    """A table with the same number of versions is copied to where this one was."""
    inserts = tuple(f"INSERT INTO {{t}} VALUES ({n}, 'o')" for n in (7, 8))
    other = make_table(spark, table.path.with_name("other"), statements=inserts)
    put_back(table, other.path)


def take_away_the_last_version(_: SparkSession, table: Table) -> None:
    for end in (".json", ".crc"):
        commit_file(table, 2).with_suffix(end).unlink()


def clean_up(spark: SparkSession, table: Table) -> None:
    delta_log(spark, table).createCheckpointAtVersion(2)
    for version in (0, 1):
        commit_file(table, version).unlink()


@pytest.mark.parametrize(
    "happens", [end_of_policy, put_another_in_its_place, take_away_the_last_version, clean_up]
)
def test_a_log_that_is_not_what_it_was(
    spark: SparkSession, table_path: Path, happens: Callable[[SparkSession, Table], None]
) -> None:
    table = make_table(spark, table_path)
    log = delta_log(spark, table)
    forget_logs(spark)
    happens(spark, table)
    snapshot, has_looked = begin(spark, log)
    assert has_looked == (happens is not end_of_policy)
    check_anew(spark, table, snapshot)
    assert begin(spark, delta_log(spark, table))[1] == (happens in {end_of_policy, clean_up})
