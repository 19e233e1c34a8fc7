"""A reader of Delta tables that shares no code with Spark: `deltalake`, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from interlock.lab.model import Rows
from interlock.lab.runner import Reader


def independent_reader() -> Reader | None:
    """Return a reader of any version of a table, None where `deltalake` is not installed."""
    return _rows if find_spec("deltalake") else None


def _rows(path: Path, version: int) -> Rows:
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("t", DeltaTable(str(path), version=version))
    found = query.execute("SELECT * FROM t").read_all()
    return tuple(zip(*(column.to_pylist() for column in found.columns), strict=True))
