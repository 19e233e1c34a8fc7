"""What the calls of a `Table` return that change it."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.results._shown import Records, Shown


@dataclass(frozen=True)
class CompactionResult(Shown):
    """What a compaction did.

    Attributes:
        version: the version of the table that it made; None if there was nothing to compact
        operation_class: its class under the table's policy: COMPACT_MINOR, COMPACT_MAJOR or
            MERGE_SMALLFILES
        files_in: how many files it compacted
        files_out: how many files it made of them
        bytes_in: the size of the former, in bytes
        bytes_out: the size of the latter, in bytes
        rows: how many live rows it wrote
        rows_purged: how many rows it left behind that deletion vectors had marked dead
        winners: the versions of other jobs that it passed, oldest first

    """

    version: int | None
    operation_class: str
    files_in: int
    files_out: int
    bytes_in: int
    bytes_out: int
    rows: int
    rows_purged: int
    winners: tuple[int, ...]


@dataclass(frozen=True)
class RestoreResult(Shown):
    """What going back to an earlier version did.

    Attributes:
        bytes: the size of the table afterwards
        files: its number of files afterwards
        files_removed: how many files went
        files_restored: how many files came back
        bytes_removed: the size of the former
        bytes_restored: the size of the latter

    """

    bytes: int
    files: int
    files_removed: int
    files_restored: int
    bytes_removed: int
    bytes_restored: int


@dataclass(frozen=True)
class RemovalRecord:
    """What became of a part of a table when its policy was removed.

    Attributes:
        what: a table property of Interlock's, or a table feature
        outcome: "removed" for a property; "dropped" or "kept" for a feature
        why: the value that a removed property had; why a feature was kept

    """

    what: str
    outcome: str
    why: str | None


class Removal(Records[RemovalRecord]):
    """What was removed from a table with its policy, and what it kept."""

    record_class = RemovalRecord
