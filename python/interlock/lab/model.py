"""The expected result of two concurrent statements, computed in plain Python.

This is the lab's oracle. It knows statements only as functions on rows and the documents' sentence
for each kind of later job; it asks neither Spark nor the policies of the JVM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

Row = tuple[object, ...]
Rows = tuple[Row, ...]


class Class(Enum):
    """Kinds of jobs, by the documents' abbreviations; the value is the documents' heading."""

    IO = "INSERT OVERWRITE"
    II = "INSERT INTO"
    UD = "UPDATE / DELETE"
    MIN = "MINOR COMPACT"
    MAJ = "MAJOR COMPACT"
    SFM = "small file MERGE"


COMPACTIONS = frozenset({Class.MIN, Class.MAJ, Class.SFM})


class Outcome(Enum):
    """The outcome of two concurrent jobs.

    CAN occurs only in a document's cell: whether such jobs conflict depends on what they touch.
    """

    BOTH = "both"
    FAIL = "fail"
    REFUSED = "refused"
    CAN = "can"


@dataclass(frozen=True)
class Body:
    """A statement as a job runs it.

    Attributes:
        kind: its class
        sql: the statement; `{t}` stands for the table
        effect: its effect on the rows it reads; a compaction changes none
        scope: for IO, which rows it replaces; for compaction, which it moves
        adds_files: whether it adds files, so that a later job misses data (rather than reads
            data that is gone)
        settings: the session's settings under which it runs

    """

    kind: Class
    sql: str
    effect: Callable[[Rows], Rows] = lambda rows: rows
    scope: Callable[[Row], bool] = lambda row: True
    adds_files: bool = True
    settings: tuple[tuple[str, str], ...] = ()


def rows_after(earlier: Body, later: Body, start: Rows, outcome: Outcome) -> Rows:
    """Return the rows after both jobs, each of which read `start`."""
    between = earlier.effect(start)
    if outcome is not Outcome.BOTH or later.kind in COMPACTIONS:
        return in_order(between)
    if later.kind is Class.IO:  # replaces what is there when it commits, by what it computed
        kept = tuple(row for row in between if not later.scope(row))
        return in_order(kept + tuple(row for row in later.effect(start) if later.scope(row)))
    if later.kind is Class.II:  # adds what it computed from the rows it read
        added = Counter(later.effect(start)) - Counter(start)
        return in_order(between + tuple(added.elements()))
    return in_order(later.effect(between))


def error_of(earlier: Body, later: Body) -> str:
    """Name the class in `interlock.errors` with which `later` must fail."""
    earlier_compacts = earlier.kind in COMPACTIONS
    if later.kind in COMPACTIONS:
        if earlier_compacts:
            return "ConcurrentDeleteDeleteError"
        return "ConcurrentAppendError" if earlier.kind is Class.II else "ConcurrentDeleteReadError"
    if earlier.adds_files and not earlier_compacts:
        return "ConcurrentAppendError"
    return "ConcurrentDeleteReadError"


def in_order(rows: Rows) -> Rows:
    """Sort rows, so that equal sets of rows are equal."""
    return tuple(sorted(rows, key=repr))
