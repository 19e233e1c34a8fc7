"""Conflict policies for Delta tables, enforced where Spark commits.

    spark = interlock.configure(SparkSession.builder).getOrCreate()
    interlock.table(spark, "db.flights").compact("minor")

Importing this package imports neither PySpark nor anything else that is heavy; the names below are
loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from interlock.artifacts import __version__, jar_path, maven_coordinates

if TYPE_CHECKING:
    from interlock.errors import (
        CommitStateUnknown,
        ConcurrentAppendError,
        ConcurrentDeleteDeleteError,
        ConcurrentDeleteReadError,
        ConcurrentTransactionError,
        ConcurrentWriteError,
        ConfigurationError,
        ConfigurationWarning,
        ConflictError,
        InterlockError,
        MetadataChangedError,
        ProtocolChangedError,
        UsageError,
        VersionMismatchError,
    )
    from interlock.session import configure
    from interlock.tables import CompactionResult, Table, table

__all__ = [
    "CommitStateUnknown",
    "CompactionResult",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConfigurationError",
    "ConfigurationWarning",
    "ConflictError",
    "InterlockError",
    "MetadataChangedError",
    "ProtocolChangedError",
    "Table",
    "UsageError",
    "VersionMismatchError",
    "__version__",
    "configure",
    "jar_path",
    "maven_coordinates",
    "table",
]

_TABLES = "interlock.tables"
_HOMES = {
    "CompactionResult": _TABLES,
    "Table": _TABLES,
    "configure": "interlock.session",
    "table": _TABLES,
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "interlock.errors")), name)


def __dir__() -> list[str]:
    return __all__
