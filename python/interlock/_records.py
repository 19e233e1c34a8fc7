"""Reads the rows of Interlock's statements into `interlock.results`.

Times are read as microseconds: PySpark would return them without time zone, in the machine's zone,
in which an hour of each autumn is ambiguous.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.results import Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = ("since", "time", "time_version", "timestamp", "until")
_R = TypeVar("_R", bound=Records[Any])


def read(kind: type[_R], frame: DataFrame) -> _R:
    """Read records from rows that have their fields."""
    return kind(tuple(kind.record_class(**row) for row in rows(frame)))


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Read rows as the fields of records."""
    columns = [
        f"unix_micros(`{name}`) AS `{name}`" if name in _TIMES else f"`{name}`"
        for name in frame.columns
    ]
    return [_fields(row) for row in frame.selectExpr(*columns).collect()]


def _fields(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = row.asDict()
    if "class" in found:  # a keyword of Python's
        found["operation_class"] = found.pop("class")
    for name, value in found.items():
        if isinstance(value, list):
            found[name] = tuple(value)
        elif name in _TIMES and value is not None:
            found[name] = utc(value)
    return found


def utc(micros: int) -> datetime:
    """Return the time so many microseconds after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)
