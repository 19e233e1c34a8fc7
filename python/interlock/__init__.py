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

from interlock._artifacts import __version__, jar_path, maven_coordinates

if TYPE_CHECKING:
    from interlock._changes import Diff
    from interlock._races import Job, JobResult, race
    from interlock._retries import retry
    from interlock._session import configure
    from interlock._tables import Claim, Table, table
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

__all__ = [
    "ArgumentError",
    "Claim",
    "ClaimRecord",
    "Claims",
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

_RACES = "interlock._races"
_RESULTS = "interlock.results"
_TABLES = "interlock._tables"
_HOMES = {
    "Claim": _TABLES,
    "ClaimRecord": _RESULTS,
    "Claims": _RESULTS,
    "CompactionResult": _RESULTS,
    "ConflictRecord": _RESULTS,
    "Conflicts": _RESULTS,
    "Diff": "interlock._changes",
    "Explanation": _RESULTS,
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
    "configure": "interlock._session",
    "race": _RACES,
    "retry": "interlock._retries",
    "table": _TABLES,
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'interlock' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "interlock.errors")), name)


def __dir__() -> list[str]:
    return __all__
