"""What `Table.files` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.results._shown import Records


@dataclass(frozen=True)
class FileRecord:
    """A live data file.

    Attributes:
        path: where it is, as the table's log says
        partition: the values of the partition columns, as text
        size: in bytes
        rows: how many live rows it has
        dead_rows: how many rows of it a deletion vector marks dead
        row_commit_version: the version that last wrote its rows, where the rows themselves do not
            say so; None without row tracking
        compacted_from: the files that it was compacted from, None where Interlock did not make it,
            or the log has that commit no more

    """

    path: str
    partition: Mapping[str, str | None]
    size: int
    rows: int | None
    dead_rows: int | None
    row_commit_version: int | None
    compacted_from: tuple[str, ...] | None


class Files(Records[FileRecord]):
    """The live files of a table."""

    record_class = FileRecord
