"""Shared by the tests of the traps: tables, and checks of all their versions."""

from __future__ import annotations

from interlock.lab import variants
from interlock.lab.cases import Case
from interlock.lab.example import PLAIN, Tables
from interlock.lab.model import Rows, in_order
from interlock.lab.reader import independent_reader
from interlock.lab.runner import run_case
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log, live_rows
from tests.kit.support import Table, commit, deltalake_rows, latest_version

MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
OVERWRITE = "INSERT OVERWRITE {t} VALUES (200, 'y')"
START = ((1, "a"), (2, "b"), (3, "c"))
VARIANTS = {variant.id: variant for variant in variants.ALL}


def run(spark: SparkSession, tables: Tables, case: Case) -> Table:
    """Run a case of the lab, and return its table once all is as its model says."""
    result = run_case(spark, tables, case, reader=independent_reader())
    assert result.problems == ()
    table = Table(result.table)
    assert live_rows(check_log(table)) == len(result.rows)
    return table


def example(tables: Tables, **properties: str) -> Table:
    """Make a copy of the documents' example, {1a, 2b, 3c} at version 2."""
    wanted = {"enableDeletionVectors": "true", **properties}
    named = {f"delta.{name}": value for name, value in wanted.items()}
    return Table(tables.fresh(PLAIN, {"interlock.policy": "maxcompute_delta", **named}))


def check_history(spark: SparkSession, table: Table, history: dict[int, Rows]) -> None:
    """Compare the last versions, read with Spark and with `deltalake`, and check the log."""
    assert latest_version(table) == max(history)
    assert live_rows(check_log(table)) == len(history[max(history)])
    read = " UNION ALL ".join(
        f"SELECT {version} AS version, * FROM {table} VERSION AS OF {version}"
        for version in history
    )
    found = spark.sql(read).collect()
    for version, expected in history.items():
        rows_then = (tuple(row)[1:] for row in found if row["version"] == version)
        assert in_order(tuple(rows_then)) == in_order(expected)
        assert deltalake_rows(table, version=version) == in_order(expected)


def paths(table: Table, version: int, action: str) -> set[str]:
    return {found[action]["path"] for found in commit(table, version) if action in found}
