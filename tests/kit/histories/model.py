"""Rows, and what a job does to them, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from tests.kit.histories.documents import Heading
from tests.kit.support import Table


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        p: its partition, where the table has any
        number: its row id, if it is known because the row is older than the history
        since: the version that wrote its values, None before it has one

    """

    id: int
    v: str
    p: int | None = None
    number: int | None = None
    since: int | None = None

    @property
    def s(self) -> tuple[int, int]:
        """The nested column's value, if there is one; a copy with id + 100 has the same."""
        return self.id % 4, self.id % 5


Rows = tuple[Row, ...]
Source = Callable[[Rows], Rows]
NOWHERE: Callable[[int | None], bool] = lambda p: False  # noqa: E731


@dataclass(frozen=True)
class Change:
    """A job's effect: rows that it removes, adds and changes."""

    deleted: Rows = ()
    inserted: Rows = ()
    updated: tuple[tuple[Row, Row], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.deleted or self.inserted or self.updated)

    @property
    def partitions(self) -> frozenset[int | None]:
        """Return the partitions in which rows are removed or added."""
        touched = [*self.deleted, *self.inserted]
        touched += [row for pair in self.updated for row in pair]
        return frozenset(row.p for row in touched)

    def on(self, rows: Rows, version: int) -> Rows:
        """Return `rows` after the change, which makes `version`."""
        left = list(rows)
        for gone in (*self.deleted, *(before for before, _ in self.updated)):
            left.remove(gone)
        left += [replace(row, since=version) for row in self.inserted]
        left += [replace(after, since=version) for _, after in self.updated]
        return tuple(left)


@dataclass(frozen=True)
class Predicate:
    """A condition in SQL and in Python.

    Attributes:
        sql: a condition on the columns
        holds: the same on a row
        selects: whether it can hold for a row of a partition, as far as only the partition says

    """

    sql: str
    holds: Callable[[Row], bool]
    selects: Callable[[int | None], bool] = lambda p: True


@dataclass(frozen=True)
class Job:
    """A statement.

    Attributes:
        heading: what the documents call it
        sql: the statement; `{t}` stands for the table
        change: what it does, from the rows it read and the rows that are there when it commits
        covers: the partitions that it replaces or can select, besides those it writes
        settings: those of its session
        refused_as: the condition of the error with which it must be refused, in any race
        by_hand: writes the commit of a writer without Interlock, None where a session runs `sql`
        tells: whether its commit tells the partitions that it changes
        steps: runs it in place of `sql`, and calls what it is given once it has read its source,
            unless the write reads it itself

    """

    heading: Heading
    sql: str
    change: Callable[[Rows, Rows], Change] = lambda read, now: Change()
    covers: Callable[[int | None], bool] = lambda p: True
    settings: tuple[tuple[str, str], ...] = ()
    refused_as: str | None = None
    by_hand: Callable[[Table], None] | None = None
    tells: bool = True
    steps: Callable[[SparkSession, Table, Callable[[], None]], object] | None = None

    @property
    def compacts(self) -> bool:
        return self.heading in (Heading.MINOR, Heading.MAJOR, Heading.SMALL_FILES)
