"""What the calls of a `Table` return: frozen dataclasses, and sequences of them."""

from __future__ import annotations

from interlock.results._shown import Records, Shown
from interlock.results.blocks import BlockRecord, Blocks
from interlock.results.claims import ClaimRecord, Claims
from interlock.results.conflicts import ConflictRecord, Conflicts, Explanation
from interlock.results.files import FileRecord, Files
from interlock.results.statements import CompactionResult, Removal, RemovalRecord, RestoreResult
from interlock.results.versions import History, HistoryRecord, VersionRecord, Versions

__all__ = [
    "BlockRecord",
    "Blocks",
    "ClaimRecord",
    "Claims",
    "CompactionResult",
    "ConflictRecord",
    "Conflicts",
    "Explanation",
    "FileRecord",
    "Files",
    "History",
    "HistoryRecord",
    "Records",
    "Removal",
    "RemovalRecord",
    "RestoreResult",
    "Shown",
    "VersionRecord",
    "Versions",
]
