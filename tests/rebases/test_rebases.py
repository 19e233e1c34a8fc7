"""Rebases over compactions: rows are followed into other files, and no data is read or written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import ConflictError
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log, live_rows
from tests.kit.support import (
    Table,
    commit,
    commit_info,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
)

MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
FILES = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(0, 10)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'b' FROM range(10, 20)",
    "DELETE FROM {t} WHERE id IN (1, 4, 12)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'c' FROM range(20, 30)",
)
BEFORE = {i: "abc"[i // 10] for i in range(30) if i not in (1, 4, 12)}
VECTORS = {"delta.enableDeletionVectors": "true"}
WHOLE_FILES = {"delta.enableDeletionVectors": "false"}


def three_files(
    spark: SparkSession, path: Path, *, properties: dict[str, str] | None = None
) -> Table:
    """Files with ids 0-9, 10-19, 20-29, the first two with dead rows; version 4."""
    columns = "(id BIGINT, v STRING) USING delta"
    wanted = VECTORS | (properties or {})
    return make_table(spark, path, columns=columns, properties=wanted, statements=FILES)


def behind(
    spark: SparkSession, table: Table, winners: tuple[str, ...], last: str
) -> tuple[Exception | None, int]:
    """Commit `winners` in turn while `last` stands at its commit; return its error and version."""
    return last_of(spark, table, winners, last), latest_version(table)


def shows(spark: SparkSession, table: Table, expected: dict[int, str]) -> None:
    """Check the table by Spark, by `deltalake` and by its log; time travel to every version."""
    wanted = in_order(tuple(expected.items()))
    assert rows(spark, table) == wanted
    assert deltalake_rows(table) == wanted
    assert live_rows(check_log(table)) == len(wanted)
    assert rows(spark, table, version=4) == in_order(tuple(BEFORE.items()))


def test_rows_killed_in_several_files_are_found_behind_dead_rows(
    spark: SparkSession, table_path: Path
) -> None:
    table = three_files(spark, table_path)
    error, version = behind(spark, table, (MAJOR,), "DELETE FROM {t} WHERE id IN (0, 5, 13, 29)")
    assert error is None
    assert version == 6
    shows(spark, table, {i: v for i, v in BEFORE.items() if i not in (0, 5, 13, 29)})
    assert tags(table, 6)["interlock.rules"] == "D23"
    removed, added = file_actions(table, 6)
    assert [add["path"] for add in added] == [remove["path"] for remove in removed]
    (output,) = added
    assert output["deletionVector"]["cardinality"] == 4
    metrics = commit_info(table, 6)["operationMetrics"]
    assert (metrics["numDeletionVectorsAdded"], metrics["numRemovedFiles"]) == ("1", "0")


@pytest.mark.parametrize("properties", [VECTORS, WHOLE_FILES], ids=["vectors", "whole-files"])
@pytest.mark.parametrize("winners", [(MINOR,), (MINOR, MAJOR)], ids=["minor", "two-hops"])
def test_an_update_follows_its_rows(
    spark: SparkSession, table_path: Path, properties: dict[str, str], winners: tuple[str, ...]
) -> None:
    table = three_files(spark, table_path)
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({settings})")
    error, version = behind(spark, table, winners, "UPDATE {t} SET v = 'U' WHERE id IN (2, 11)")
    assert error is None
    assert version == 6 + len(winners)
    shows(spark, table, {i: "U" if i in (2, 11) else v for i, v in BEFORE.items()})


@pytest.mark.parametrize("properties", [VECTORS, WHOLE_FILES], ids=["vectors", "whole-files"])
def test_a_compaction_takes_over_what_was_deleted_meanwhile(
    spark: SparkSession, table_path: Path, properties: dict[str, str]
) -> None:
    table = three_files(spark, table_path)
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({settings})")
    deleted = "DELETE FROM {t} WHERE id IN (0, 13) OR id >= 20"
    error, version = behind(spark, table, (deleted,), MINOR)
    assert error is None
    assert version == 7
    shows(spark, table, {i: v for i, v in BEFORE.items() if i not in (0, 13) and i < 20})
    assert tags(table, 7)["interlock.rules"] == "D14"
    assert not any(action["dataChange"] for side in file_actions(table, 7) for action in side)


def test_a_job_before_both_compactions_follows_a_superseded_one(
    spark: SparkSession, table_path: Path
) -> None:
    """MINOR merges two of three small files; MAJOR, which began earlier, replaces its output."""
    table = three_files(spark, table_path, properties={"interlock.compaction.minFiles": "3"})

    def compactions(session: SparkSession) -> None:
        first, held = race(session, sql_job(MINOR.format(t=table)), sql_job(MAJOR.format(t=table)))
        assert (first.error, held.error, held.held) == (None, None, True)

    update = sql_job(f"UPDATE {table} SET v = 'U' WHERE id IN (3, 15, 25)")
    first, held = race(spark, python_job("compactions", compactions), update)
    assert (first.error, held.error, held.held) == (None, None, True)
    shows(spark, table, {i: "U" if i in (3, 15, 25) else v for i, v in BEFORE.items()})
    assert tags(table, 6)["interlock.rules"] == "D20"
    assert tags(table, 7)["interlock.winners"] == "5,6"
    assert len(check_log(table)) == 2


def test_a_major_compaction_does_not_supersede_a_zorder(
    spark: SparkSession, table_path: Path
) -> None:
    table = three_files(spark, table_path)
    error, version = behind(spark, table, ("OPTIMIZE {t} ZORDER BY (v)",), MAJOR)
    assert isinstance(error, ConflictError)
    assert error.rule == "D20"
    assert "moved rows without recording where to" in str(error)
    assert version == 5
    shows(spark, table, BEFORE)


def test_a_permuting_compaction_passes_jobs_on_other_files(
    spark: SparkSession, table_path: Path
) -> None:
    """INSERT and clustering both succeed in either order; so does a DELETE that finds no row."""
    table = three_files(spark, table_path)
    zorder, insert = "OPTIMIZE {t} ZORDER BY (v)", "INSERT INTO {t} VALUES (99, 'i')"
    error, _ = behind(spark, table, (zorder,), insert)
    assert error is None
    error, _ = behind(spark, table, (insert.replace("99", "98"),), zorder)
    assert error is None
    error, _ = behind(spark, table, (zorder,), "DELETE FROM {t} WHERE id = 1000")
    assert error is None
    shows(spark, table, BEFORE | {99: "i", 98: "i"})


def test_a_missing_deletion_vector_is_a_conflict_and_loses_nothing(
    spark: SparkSession, table_path: Path
) -> None:
    table = three_files(spark, table_path)
    found = {path: path.read_bytes() for path in table.path.glob("deletion_vector_*.bin")}
    assert found

    def compact_and_vacuum(session: SparkSession) -> None:
        session.sql(MAJOR.format(t=table))
        for path in found:
            path.unlink()

    held = race(
        spark,
        python_job("compact, vacuum", compact_and_vacuum),
        sql_job(f"DELETE FROM {table} WHERE id = 5"),
    )[1]
    assert isinstance(held.error, ConflictError)
    assert "VACUUM must retain" in str(held.error)
    assert latest_version(table) == 5
    for path, content in found.items():
        path.write_bytes(content)
    shows(spark, table, BEFORE)


def test_a_job_that_fails_after_a_remap_leaves_no_vector_behind(
    spark: SparkSession, table_path: Path
) -> None:
    table = three_files(spark, table_path)
    insert = "INSERT INTO {t} VALUES (99, 'i')"
    before = {path.name for path in table.path.glob("*.bin")}
    error, version = behind(spark, table, (MAJOR, insert), "DELETE FROM {t} WHERE id = 5")
    assert isinstance(error, ConflictError)
    assert error.rule == "D8"
    assert version == 6
    assert {path.name for path in table.path.glob("*.bin")} == before
    shows(spark, table, BEFORE | {99: "i"})


@pytest.mark.variant_cases(but=["vectors"])
@pytest.mark.parametrize("properties", [VECTORS, WHOLE_FILES], ids=["vectors", "whole-files"])
def test_restore_and_vacuum_keep_what_is_live(
    spark: SparkSession, table_path: Path, properties: dict[str, str]
) -> None:
    table = three_files(spark, table_path)
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    if properties is WHOLE_FILES:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({settings})")
    error, version = behind(spark, table, (MAJOR,), "UPDATE {t} SET v = 'U' WHERE id = 15")
    assert error is None
    expected = {i: "U" if i == 15 else v for i, v in BEFORE.items()}
    clone = Table(table_path.with_name("clone"))
    shutil.copytree(table.path, clone.path)
    for at in (4, version):
        spark.sql(f"RESTORE TABLE {clone} TO VERSION AS OF {at}")
        assert rows(spark, clone) == rows(spark, table, version=at)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {clone} RETAIN 0 HOURS")
    assert rows(spark, clone) == deltalake_rows(clone) == in_order(tuple(expected.items()))


def file_actions(table: Table, version: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the `remove` and the `add` actions of a version."""
    actions = commit(table, version)
    removed = [action["remove"] for action in actions if "remove" in action]
    return removed, [action["add"] for action in actions if "add" in action]
