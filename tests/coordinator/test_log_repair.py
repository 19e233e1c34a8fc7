"""`CALL interlock.repair`, after a commit was replaced or the log was put back from a backup."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import interlock.errors as errors
import pytest
from pyspark.sql import SparkSession

from tests.kit.foreign import added, commit_by_hand, copy
from tests.kit.log_replay import check_log
from tests.kit.snapshots import delta_log
from tests.kit.support import (
    Table,
    await_checkpoints,
    check_row_ids,
    commit_file,
    deltalake_rows,
    latest_version,
    make_table,
    put_back,
    python_job,
    race,
    rows,
    sql_job,
)

EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))


def replace_without_files(table: Table, version: int) -> None:
    """Put another commit in the place of one, which adds nothing."""
    file = commit_file(table, version)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if '"add"' not in line))


def versions_with(table: Table, kind: str) -> list[int]:
    """Return the versions that have a checkpoint of any format, or a `crc`."""
    files = (table.path / "_delta_log").glob(f"0*.{kind}*")
    return sorted({int(file.name[:20]) for file in files})


def test_a_log_that_was_put_back_is_taken_as_it_is(
    spark: SparkSession, table_path: Path, tmp_path: Path
) -> None:
    table = make_table(spark, table_path)
    shutil.copytree(table_path, tmp_path / "backup")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    put_back(table, tmp_path / "backup")
    (repaired,) = spark.sql(f"CALL interlock.repair('{table.path}')").collect()
    assert repaired.asDict() == {"version": 2, "operation": "INSERT INTO"}
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    check_log(table)
    check_row_ids(spark, table)
    wanted = ((1, "a"), (2, "b"), (3, "c"), (5, "e"))
    assert rows(spark, table) == deltalake_rows(table) == wanted
    shutil.copy(
        tmp_path / "backup/_delta_log" / f"{2:020}.json",
        table_path / "_delta_log" / f"{3:020}.json",
    )
    with pytest.raises(errors.InterlockError) as stopped:
        spark.sql(f"INSERT INTO {table} VALUES (6, 'f')")
    assert stopped.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"


def test_checksums_of_a_commit_that_was_replaced(spark: SparkSession, table_path: Path) -> None:
    """A repair deletes the checksums of the replaced commit and of the one after it."""
    table = make_table(spark, table_path)
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    replace_without_files(table, 2)
    spark.sql(f"CALL interlock.repair('{table.path}')")
    assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"), (4, "d"))
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    assert commit_file(table, 4).with_suffix(".crc").exists()
    check_log(table)
    wanted = ((1, "a"), (2, "b"), (4, "d"), (5, "e"))
    assert rows(spark, table) == deltalake_rows(table) == wanted


@pytest.mark.parametrize("kind", ["classic", "v2"])
@pytest.mark.parametrize("is_behind", [False, True])
def test_a_checkpoint_that_holds_what_a_replaced_commit_had(
    spark: SparkSession, table_path: Path, kind: str, *, is_behind: bool
) -> None:
    """The checkpoint is of the commit itself, or of another writer's behind it.

    It counts as missing, and the next version gets one.
    """
    interval = {"delta.checkpointInterval": "100" if is_behind else "3"}
    properties = {**interval, "delta.checkpointPolicy": kind}
    table = make_table(spark, table_path, properties=properties)
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    await_checkpoints(spark)
    if is_behind:
        commit_by_hand(table, "WRITE", copy(table, added(table, 2)[0], {}))
        delta_log(spark, table).createCheckpointAtVersion(4)
    replace_without_files(table, 3)
    minutes_ago = time.time() - 120
    os.utime(commit_file(table, 3), (minutes_ago, minutes_ago))
    left_over = commit_file(table, 9).with_suffix(".crc")
    shutil.copy(commit_file(table, 3).with_suffix(".crc"), left_over)
    assert versions_with(table, "checkpoint") == [4 if is_behind else 3]
    spark.sql(f"CALL interlock.repair('{table.path}', replaced => 3)")
    assert versions_with(table, "checkpoint") == []
    assert versions_with(table, "crc") == [0, 1, 2]
    assert not (table.path / "_delta_log/_last_checkpoint").exists()
    wanted = ((1, "a"), (2, "b"), (3, "c"), *([(3, "c")] * is_behind))
    assert rows(spark, table) == deltalake_rows(table) == wanted
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    await_checkpoints(spark)
    assert versions_with(table, "checkpoint") == ([] if is_behind else [4])
    check_log(table)
    assert rows(spark, table) == deltalake_rows(table) == (*wanted, (5, "e"))


def test_compacted_commits_that_hold_what_a_replaced_commit_had(
    spark: SparkSession, table_path: Path
) -> None:
    """Delta's kernel writes such files; here it is the concatenation that Delta reads too."""
    table = make_table(spark, table_path)
    text = "".join(commit_file(table, version).read_text() for version in (1, 2))
    lines = [line for line in text.splitlines(keepends=True) if "commitInfo" not in line]
    compacted = commit_file(table, 1).with_suffix(f".{2:020}.compacted.json")
    compacted.write_text("".join(lines))
    replace_without_files(table, 2)
    spark.sql(f"CALL interlock.repair('{table.path}', replaced => 2)")
    assert not compacted.exists()
    assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"))


@pytest.mark.parametrize(
    ("replaced", "lost", "left", "why"),
    [
        (4, 1, "", None),
        (3, 1, None, "DELTA_VERSIONS_NOT_CONTIGUOUS"),
        (3, 1, '{"commitInfo":{}}', "version 2 has 1 files of .*, but its checksum 2 of"),
        (3, 2, "", "no commit 2"),
        (3, 0, '{"commitInfo":{}}', "DELTA_STATE_RECOVER_ERROR"),
        (3, 3, None, "no commit 3"),
        (2, 3, "", "no commit 3"),
        (2, 3, '{"add":', "Unexpected end-of-input"),
        (0, 0, '{"commitInfo":{}}', "no beginning of the table"),
    ],
)
def test_a_checkpoint_is_kept(
    spark: SparkSession,
    table_path: Path,
    replaced: int,
    lost: int,
    left: str | None,
    why: str | None,
) -> None:
    """An earlier checkpoint is kept, and one without which the table cannot be read."""
    table = make_table(spark, table_path, properties={"delta.checkpointInterval": "3"})
    for n in (4, 5):
        spark.sql(f"INSERT INTO {table} VALUES ({n}, 'd')")
        await_checkpoints(spark)
    log = table.path / "_delta_log"
    before = {file: file.read_bytes() for file in log.iterdir() if file.is_file()}
    file = commit_file(table, lost)
    if left is None:
        file.unlink()
        del before[file]
    else:
        file.write_text(left)
        before[file] = left.encode()
    repair = f"CALL interlock.repair('{table.path}', replaced => {replaced})"
    if why is None:
        spark.sql(repair)
    else:
        with pytest.raises(errors.InterlockError, match=why) as refused:
            spark.sql(repair)
        assert refused.value.condition == "INTERLOCK_REPAIR_REFUSED"
        assert {file: file.read_bytes() for file in before} == before
    assert versions_with(table, "checkpoint") == [3]
    wanted = ((1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "d"))
    assert rows(spark, table) == deltalake_rows(table) == wanted


def test_a_statement_that_read_the_table_before(
    spark: SparkSession, table_path: Path, tmp_path: Path
) -> None:
    table = make_table(spark, table_path)
    shutil.copytree(table_path, tmp_path / "backup")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")

    def repair(session: SparkSession) -> None:
        put_back(table, tmp_path / "backup")
        session.sql(f"CALL interlock.repair('{table.path}')")
        session.sql(f"INSERT INTO {table} VALUES (5, 'e')")

    late = sql_job(f"DELETE FROM {table} WHERE id >= 4")
    repaired, lost = race(spark, python_job("repair", repair), late)
    assert repaired.error is None
    assert isinstance(lost.error, errors.InterlockError)
    assert lost.error.condition == "INTERLOCK_TABLE_GONE"
    assert "Its log was put back to another state" in str(lost.error)
    assert rows(spark, table) == deltalake_rows(table)
    assert rows(spark, table) == ((1, "a"), (2, "b"), (3, "c"), (5, "e"))


def test_a_checkpoint_that_is_protected_is_kept(spark: SparkSession, table_path: Path) -> None:
    """DROP FEATURE leaves checkpoints, behind which a reader need not know the feature."""
    table = make_table(spark, table_path)
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
    spark.sql(f"ALTER TABLE {table} DROP FEATURE deletionVectors")
    protected = latest_version(table)
    before = versions_with(table, "checkpoint")
    assert before[-1] == protected
    with pytest.raises(
        errors.InterlockError, match=f"to version {protected} are protected"
    ) as error:
        spark.sql(f"CALL interlock.repair('{table.path}', replaced => {protected})")
    assert error.value.condition == "INTERLOCK_REPAIR_REFUSED"
    assert versions_with(table, "checkpoint") == before
    for n in (4, 5):
        spark.sql(f"INSERT INTO {table} VALUES ({n}, 'd')")
    delta_log(spark, table).createCheckpointAtVersion(protected + 2)
    replace_without_files(table, protected + 1)
    spark.sql(f"CALL interlock.repair('{table.path}', replaced => {protected + 1})")
    assert versions_with(table, "checkpoint") == before
    assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (5, "d"))


def test_a_file_that_cannot_be_deleted(spark: SparkSession, table_path: Path) -> None:
    """Files deleted before the error stay deleted; the call can be repeated."""
    table = make_table(spark, table_path, properties={"delta.checkpointInterval": "2"})
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    await_checkpoints(spark)
    replace_without_files(table, 2)
    stuck = commit_file(table, 9).with_suffix(".crc")
    (stuck / "inside").mkdir(parents=True)
    repair = f"CALL interlock.repair('{table.path}', replaced => 2)"
    with pytest.raises(errors.InterlockError, match=f"{stuck} could not be deleted") as raised:
        spark.sql(repair)
    assert raised.value.condition == "INTERLOCK_REPAIR_INCOMPLETE"
    assert versions_with(table, "checkpoint") == []
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    shutil.rmtree(stuck)
    spark.sql(repair)
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    wanted = ((2, "b"), (4, "d"), (5, "e"))
    assert rows(spark, table) == deltalake_rows(table) == wanted


def test_what_spark_has_cached(spark: SparkSession, table_path: Path) -> None:
    """Cached reads of the latest version and of the replaced version are dropped."""
    table = make_table(spark, table_path)
    spark.table(f"{table}").cache().count()
    spark.sql(f"SELECT * FROM {table} VERSION AS OF 2").cache().count()
    replace_without_files(table, 2)
    assert rows(spark, table) == rows(spark, table, version=2) == EXAMPLE
    spark.sql(f"CALL interlock.repair('{table.path}')")
    wanted = ((1, "a"), (2, "b"))
    assert rows(spark, table) == rows(spark, table, version=2) == deltalake_rows(table) == wanted
