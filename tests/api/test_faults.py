"""Faults of storage, database, configuration or other writers arrive as Interlock's errors.

Each error is one of Interlock's, with a condition that names it, an SQLSTATE and a text of several
lines; afterwards the table is as it was. What goes wrong while Spark or Delta read a table is told
in their own words, as on a table without a policy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import interlock
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from tests.kit.barrier import barrier
from tests.kit.foreign import commit_by_hand
from tests.kit.support import Table, commit_file, latest_version, make_table, rows, versions

HELD = "INSERT INTO {t} SELECT held(20), 'z'"


def occupy(table: Table) -> None:
    commit_file(table, latest_version(table) + 1).mkdir()


def replace_last(table: Table) -> None:
    commit_file(table, latest_version(table)).unlink()
    commit_by_hand(table, "WRITE")


def lose_last(table: Table) -> None:
    commit_file(table, latest_version(table)).unlink()


def lose_log(table: Table) -> None:
    shutil.rmtree(table.path / "_delta_log")


class Fault(NamedTuple):
    """What goes wrong, and what a statement then raises.

    Attributes:
        error: the class
        condition: in the catalogue
        statement: what meets it, with `{t}` for the table
        settings: of the session
        harm: what is done to the table's files once the statement has read the table

    """

    error: type[interlock.InterlockError]
    condition: str
    statement: str
    settings: dict[str, str]
    harm: Callable[[Table], None] | None = None


def refused(condition: str, statement: str, settings: dict[str, str] | None = None) -> Fault:
    return Fault(interlock.UsageError, f"INTERLOCK_{condition}", statement, settings or {})


def alter(properties: str) -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ({properties})"


POLICY = "spark.interlock.policies."
FAULTS = {
    "storage": Fault(interlock.StorageError, "INTERLOCK_STORAGE_FAILED", HELD, {}, occupy),
    "dropped": Fault(interlock.UsageError, "INTERLOCK_TABLE_GONE", HELD, {}, lose_log),
    "put back": Fault(interlock.UsageError, "INTERLOCK_COMMIT_OVERWRITTEN", HELD, {}, lose_last),
    "overwritten": Fault(
        interlock.UsageError, "INTERLOCK_COMMIT_OVERWRITTEN", HELD, {}, replace_last
    ),
    "no database": refused("COORDINATOR_UNAVAILABLE", alter("'interlock.coordinator' = 'closed'")),
    "unknown coordinator": refused("UNKNOWN_COORDINATOR", alter("'interlock.coordinator' = 'x'")),
    "coordinator of the session": refused(
        "COORDINATOR_SETTING",
        alter("'interlock.coordinator' = 'x'"),
        {"spark.interlock.coordinator.x.url": "jdbc:postgresql://127.0.0.1:1/x"},
    ),
    "unknown policy": refused("UNKNOWN_POLICY", alter("'interlock.policy' = 'row_levle'")),
    "policy without a file": refused(
        "MALFORMED_POLICY", alter("'interlock.policy' = 'own'"), {f"{POLICY}own": "/no/such/file"}
    ),
    "broken policy": refused(
        "MALFORMED_POLICY",
        "DELETE FROM {t} WHERE id = 1",
        {f"{POLICY}maxcompute_delta": "no policy"},
    ),
    "wrong size": refused(
        "INVALID_PROPERTY",
        "ALTER TABLE {t} COMPACT MINOR",
        {"spark.interlock.compaction.smallFileSize": "small"},
    ),
}


@pytest.mark.variant_cases("connect-*", but=["connect-storage"])
@pytest.mark.parametrize("name", FAULTS)
def test_an_error_says_what_why_and_what_to_do(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    fault = FAULTS[name]
    table = make_table(spark, tmp_path / "table")
    spark.sql(f"INSERT INTO {table} VALUES (40, 'own')")  # the session's last commit
    before, log = rows(spark, table), versions(table)
    for key, value in fault.settings.items():
        spark.sql(f"SET {key} = {value}")
    error = raised_by(spark, table, fault)
    for key in fault.settings:
        spark.sql(f"RESET {key}")
    assert isinstance(error, fault.error), error
    assert isinstance(error, interlock.InterlockError)
    assert error.getCondition() == fault.condition
    assert error.getSqlState()
    lines = error.message.splitlines()
    assert lines[0].startswith(f"[{fault.condition}] ")
    assert len(lines) >= 2
    assert not [line for line in lines if line.startswith("\tat ")]
    if fault.harm is None:
        assert (rows(spark, table), versions(table)) == (before, log)
        spark.sql(f"INSERT INTO {table} VALUES (30, 'later')")


def raised_by(spark: SparkSession, table: Table, fault: Fault) -> Exception:
    with barrier() as made, ThreadPoolExecutor(1) as thread:
        spark.udf.register("held", made.passing(at=20), IntegerType())
        if fault.harm is None:
            made.open()
        end = thread.submit(spark.sql, fault.statement.format(t=table))
        if fault.harm is not None:
            made.await_arrival(of=end)
            fault.harm(table)
            made.open()
        error = end.exception()
    assert isinstance(error, Exception)
    return error
