"""Conflict policies for Delta tables, enforced where Spark commits.

    spark = interlock.configure(SparkSession.builder).getOrCreate()
    flights = interlock.table(spark, "db.flights")
    flights.between(versions=(3, None)).show()

Importing this package does not import PySpark or any other large package; the names below are
loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from interlock.artifacts import __version__, jar_path, maven_coordinates

if TYPE_CHECKING:
    from interlock.audit import ConflictRecord, Conflicts, Explanation
    from interlock.changes import Diff
    from interlock.errors import (
        ArgumentError,
        CommitStateUnknown,
        CommittedError,
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
        StorageError,
        UsageError,
        VersionMismatchError,
    )
    from interlock.races import Job, JobResult, race
    from interlock.results import (
        CompactionResult,
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
    from interlock.retries import retry
    from interlock.session import configure
    from interlock.tables import Table, table

__all__ = [
    "ArgumentError",
    "CommitStateUnknown",
    "CommittedError",
    "CompactionResult",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConfigurationError",
    "ConfigurationWarning",
    "ConflictError",
    "ConflictRecord",
    "Conflicts",
    "Diff",
    "Explanation",
    "FileRecord",
    "Files",
    "History",
    "HistoryRecord",
    "InterlockError",
    "Job",
    "JobResult",
    "MetadataChangedError",
    "ProtocolChangedError",
    "Removal",
    "RemovalRecord",
    "RestoreResult",
    "StorageError",
    "Table",
    "UsageError",
    "VersionMismatchError",
    "VersionRecord",
    "Versions",
    "__version__",
    "configure",
    "jar_path",
    "maven_coordinates",
    "race",
    "retry",
    "table",
]

_AUDIT = "interlock.audit"
_RACES = "interlock.races"
_RESULTS = "interlock.results"
_TABLES = "interlock.tables"
_HOMES = {
    "CompactionResult": _RESULTS,
    "ConflictRecord": _AUDIT,
    "Conflicts": _AUDIT,
    "Diff": "interlock.changes",
    "Explanation": _AUDIT,
    "FileRecord": _RESULTS,
    "Files": _RESULTS,
    "History": _RESULTS,
    "HistoryRecord": _RESULTS,
    "Job": _RACES,
    "JobResult": _RACES,
    "Removal": _RESULTS,
    "RemovalRecord": _RESULTS,
    "RestoreResult": _RESULTS,
    "Table": _TABLES,
    "VersionRecord": _RESULTS,
    "Versions": _RESULTS,
    "configure": "interlock.session",
    "race": _RACES,
    "retry": "interlock.retries",
    "table": _TABLES,
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "interlock.errors")), name)


def __dir__() -> list[str]:
    return __all__
