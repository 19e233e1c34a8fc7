"""Tables with a history, and the rows that a range of their versions must return."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlock.lab.model import Rows
from pyspark.sql import DataFrame, SparkSession

from tests.kit.support import Table, commit_info, make_table

KINDS = {
    "copied on write": {
        "delta.enableDeletionVectors": "false",
        "delta.columnMapping.mode": "name",
        "delta.enableChangeDataFeed": "true",
    },
    "partitioned": {"delta.enableDeletionVectors": "true"},
}

STATEMENTS = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)",
    "INSERT INTO {t} VALUES (3, 'c', 2)",
    "UPDATE {t} SET v = 'z' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 3",
    "INSERT INTO {t} VALUES (4, 'd', 2)",
    "ALTER TABLE {t} COMPACT MAJOR",
    "UPDATE {t} SET v = v WHERE id = 2",
    "DELETE FROM {t} WHERE id = 4",
    "RESTORE TABLE {t} TO VERSION AS OF 7",
)
"""Versions 1 to 9 of a history."""

A, B, C, D = (1, "a", 1), (2, "b", 1), (3, "c", 2), (4, "d", 2)
Z = (1, "z", 1)

LIVE: dict[int, dict[tuple[object, ...], int]] = {
    2: {A: 1, B: 1, C: 2},
    4: {Z: 3, B: 1},
    6: {Z: 3, B: 1, D: 5},
    7: {Z: 3, B: 7, D: 5},
    9: {Z: 3, B: 7, D: 5},
}
"""The rows at some versions of the history, each with the version that last changed it."""


def make_history(spark: SparkSession, path: Path, kind: str) -> Table:
    """Make a table with the versions 0 to 9."""
    partitioned = " PARTITIONED BY (p)" if kind == "partitioned" else ""
    return make_table(
        spark,
        path,
        columns=f"(id INT, v STRING, p INT) USING delta{partitioned}",
        properties=KINDS[kind],
        statements=STATEMENTS,
    )


def committed(table: Table, version: int) -> str:
    """Return the time of a version in SQL."""
    return f"timestamp_millis({commit_info(table, version)['inCommitTimestamp']})"


def changed(after: int, until: int) -> Rows:
    """Return the rows that the range (after, until] must return."""
    return tuple(sorted(row for row, since in LIVE[until].items() if since > after))


def found(data: DataFrame) -> list[tuple[object, ...]]:
    """Read all rows, in order."""
    return sorted(tuple(row) for row in data.collect())


def files_read(data: DataFrame) -> Sequence[int]:
    """Run a query without a shuffle, and tell how many files each of its scans has read."""
    data.collect()
    plan: Any = data._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    return [leaves.apply(i).metrics().apply("numFiles").value() for i in range(leaves.size())]
