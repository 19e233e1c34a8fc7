"""What `interlock.Table` returns: small frozen results that also show themselves as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from interlock import tabular

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Shown:
    """Something that has rows, all of one dataclass."""

    def _rows(self) -> Sequence[Any]:
        return [self]

    def _row_class(self) -> type[Any]:
        return type(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary per row, with the columns that SQL has."""
        columns = tabular.columns(self._row_class())
        return [
            {column: getattr(row, field) for field, column in columns.items()}
            for row in self._rows()
        ]

    def to_arrow(self) -> pyarrow.Table:
        """Return it as a table of `pyarrow`, which must be installed."""
        return tabular.arrow_table(self._row_class(), self.to_dicts())

    def to_pandas(self) -> pandas.DataFrame:
        """Return it as a frame of `pandas`; needs `pandas` and `pyarrow`. Unknown is NA or NaT."""
        return tabular.pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return tabular.html(list(tabular.columns(self._row_class()).values()), self.to_dicts())


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
        winners: the versions of other jobs that it met and passed, oldest first

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
class HistoryRecord:
    """One version of a table. What its log does not tell is None; all times are in UTC.

    Attributes:
        version: the ID version: every operation makes one
        time_version: its commit timestamp, if at least one row came or went
        timestamp: the commit timestamp that `TIMESTAMP AS OF` goes by
        operation_class: its class under the table's policy
        policy: the policy that it was committed under
        operation: what the table's history calls it, but for WRITE, which is "INSERT INTO" or
            "INSERT OVERWRITE" here
        operation_parameters: the parameters of that operation
        winners: the versions of other jobs that it met and passed, oldest first
        rules: for each of them the cell of the policy that let it pass
        verdicts: for each of them what that cell says
        foreign: whether a writer without Interlock made it on a table with a policy
        rows_in: how many rows came into the table
        rows_out: how many rows went out of it
        files_added: how many files it added
        files_removed: how many files it removed
        user: who made it, where its commit tells
        txn_id: the transaction that made it
        read_version: the version that the transaction had read

    """

    version: int
    time_version: datetime | None
    timestamp: datetime | None
    operation_class: str | None
    policy: str | None
    operation: str | None
    operation_parameters: Mapping[str, str] | None
    winners: tuple[int, ...] | None
    rules: tuple[str | None, ...] | None
    verdicts: tuple[str | None, ...] | None
    foreign: bool | None
    rows_in: int | None
    rows_out: int | None
    files_added: int | None
    files_removed: int | None
    user: str | None
    txn_id: str | None
    read_version: int | None


@dataclass(frozen=True)
class VersionRecord:
    """A version of a table with its times, in UTC; attributes as those of `HistoryRecord`."""

    version: int
    time_version: datetime | None
    timestamp: datetime | None
    operation: str | None


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


_R = TypeVar("_R")


@dataclass(frozen=True)
class Records(Shown, Sequence[_R], Generic[_R]):
    """Records in a fixed order; `str` draws a table of the columns that tell most.

    Attributes:
        records: the records

    """

    record_class: ClassVar[type[Any]]
    printed: ClassVar[tuple[str, ...]] = ()
    records: tuple[_R, ...]

    def _rows(self) -> Sequence[Any]:
        return self.records

    def _row_class(self) -> type[Any]:
        return self.record_class

    def __str__(self) -> str:
        titles = list(self.printed or tabular.columns(self.record_class).values())
        rows = [[tabular.text(row[title]) for title in titles] for row in self.to_dicts()]
        return "\n".join(tabular.grid([titles, *rows]))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[_R]:
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> _R: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[_R, ...]: ...

    def __getitem__(self, index: int | slice) -> _R | tuple[_R, ...]:
        return self.records[index]


class History(Records[HistoryRecord]):
    """The versions of a table, newest first, and what is known of each."""

    record_class = HistoryRecord
    printed = (
        "version", "time_version", "class", "policy", "operation", "winners", "rules",
        "foreign", "rows_in", "rows_out", "files_added", "files_removed",
    )  # fmt: skip


class Versions(Records[VersionRecord]):
    """The versions of a table and their times, newest first."""

    record_class = VersionRecord


class Files(Records[FileRecord]):
    """The live files of a table."""

    record_class = FileRecord


class Removal(Records[RemovalRecord]):
    """What was removed from a table with its policy, and what it kept."""

    record_class = RemovalRecord
