"""What changed in a table: the rows of a range of versions, and the difference of two versions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from interlock import _arguments
from interlock._sql_text import literal, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ID = "_interlock_row_id"
_WRITTEN = "_interlock_row_commit_version"
_BEFORE = "_interlock_row_commit_version_before"


@dataclass(frozen=True)
class Diff:
    """The rows in which two versions differ, as lazy DataFrames with the table's own columns.

    Rows are identified by Delta's row tracking, not by their values. A row that an UPDATE wrote
    with the same values has changed; a row that was only compacted has not.

    Attributes:
        added: rows of the second version that are not in the first
        removed: rows of the first version that are not in the second
        changed: rows of both that were written in between, as they are in the second version

    """

    added: DataFrame
    removed: DataFrame
    changed: DataFrame


def between(
    spark: SparkSession,
    table: str,
    versions: tuple[int, int | None] | None,
    timestamps: tuple[datetime, datetime | None] | None,
) -> DataFrame:
    """Read a range of versions; the arguments are those of `interlock.Table.between`."""
    _arguments.one_of(versions=versions, timestamps=timestamps)
    if versions is not None:
        ends = _arguments.span("versions", versions, _arguments.integer)
        return _range(spark, table, "versions", *ends)
    times = _arguments.span("timestamps", timestamps, _arguments.moment)
    return _range(spark, table, "timestamps", *times)


def _range(
    spark: SparkSession,
    table: str,
    kind: str,
    after: int | datetime,
    until: int | datetime | None,
) -> DataFrame:
    ends = [literal(end) for end in (after, until) if end is not None]
    listed = ", ".join([literal(table), *ends])
    return run(spark, f"SELECT * FROM table_between_{kind}({listed})")


def diff(spark: SparkSession, table: str, from_version: int, to_version: int) -> Diff:
    """Compare two versions; the arguments are those of `interlock.Table.diff`."""
    ends = (
        _arguments.integer("from_version", from_version),
        _arguments.integer("to_version", to_version),
    )
    _ = between(spark, table, (min(ends), max(ends)), None).columns  # the errors are raised here
    first, second = (
        run(
            spark,
            f"SELECT *, _metadata.row_id AS {_ID}, _metadata.row_commit_version AS {_WRITTEN}"
            f" FROM {table} VERSION AS OF {version}",
        )
        for version in ends
    )
    before = first.selectExpr(_ID, f"{_WRITTEN} AS {_BEFORE}")
    return Diff(
        added=second.join(first, _ID, "left_anti").drop(_ID, _WRITTEN),
        removed=first.join(second, _ID, "left_anti").drop(_ID, _WRITTEN),
        changed=second.join(before, _ID)
        .where(f"{_WRITTEN} <> {_BEFORE}")
        .drop(_ID, _WRITTEN, _BEFORE),
    )
