"""Reads the rows of Interlock's statements into `interlock.results`.

Times are read as microseconds: PySpark would return them without time zone, in the machine's zone,
in which an hour of each autumn is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from interlock.results import (
    ClaimRecord,
    Claims,
    CompactionResult,
    ConflictRecord,
    Conflicts,
    Explanation,
    FileRecord,
    Files,
    History,
    HistoryRecord,
    Removal,
    RemovalRecord,
    RestoreResult,
    VersionRecord,
    Versions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = ("since", "time", "time_version", "timestamp", "until")


def history(frame: DataFrame) -> History:
    """Read the rows of `SHOW HISTORY`."""
    return History(tuple(HistoryRecord(**_renamed(row)) for row in _with_times(frame)))


def versions(frame: DataFrame) -> Versions:
    """Read the rows of `CALL interlock.versions`."""
    return Versions(tuple(VersionRecord(**row) for row in _with_times(frame)))


def files(frame: DataFrame) -> Files:
    """Read the rows of `CALL interlock.files`."""
    return Files(tuple(FileRecord(**_values(row)) for row in frame.collect()))


def claims(frame: DataFrame) -> Claims:
    """Read the rows of `CALL interlock.claims`."""
    return Claims(tuple(ClaimRecord(**_renamed(row)) for row in _with_times(frame)))


def claimed(frame: DataFrame) -> tuple[str, datetime]:
    """Read the row of `CALL interlock.claim`."""
    (row,) = _with_times(frame)
    return row["claim"], row["until"]


def removal(frame: DataFrame) -> Removal:
    """Read the rows of `CALL interlock.remove_policy`."""
    return Removal(tuple(RemovalRecord(**_values(row)) for row in frame.collect()))


def conflicts(frame: DataFrame) -> Conflicts:
    """Read the rows of `CALL interlock.conflicts`."""
    return Conflicts(tuple(ConflictRecord(**_renamed(row)) for row in _with_times(frame)))


def explanation(frame: DataFrame) -> Explanation:
    """Read the row of `CALL interlock.explain_conflict`."""
    (row,) = _with_times(frame)
    return Explanation(**_renamed(row))


def compacted(row: Row) -> CompactionResult:
    """Read the row of a compaction."""
    return CompactionResult(**_renamed(_values(row)))


def restored(row: Row) -> RestoreResult:
    """Read the row of `RESTORE TABLE`."""
    return RestoreResult(
        bytes=row["table_size_after_restore"],
        files=row["num_of_files_after_restore"],
        files_removed=row["num_removed_files"],
        files_restored=row["num_restored_files"],
        bytes_removed=row["removed_files_size"],
        bytes_restored=row["restored_files_size"],
    )


def utc(micros: int) -> datetime:
    """Return the time so many microseconds after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def _with_times(frame: DataFrame) -> Iterator[dict[str, Any]]:
    columns = [
        f"unix_micros(`{name}`) AS `{name}`" if name in _TIMES else f"`{name}`"
        for name in frame.columns
    ]
    for row in frame.selectExpr(*columns).collect():
        values = _values(row)
        times = {name: values[name] for name in _TIMES if values.get(name) is not None}
        yield {**values, **{name: utc(micros) for name, micros in times.items()}}


def _values(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = row.asDict()
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    """Rename columns whose names are Python keywords."""
    values["operation_class"] = values.pop("class")
    return values
