"""The documents' tables, copied by hand, and the verdict that follows from them.

Nothing here is read from Interlock's policies: both were written from the same pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

BOTH = "both succeed"
FAILS = "later fails"


class Heading(Enum):
    """Kinds of jobs, as the tables' headings call them."""

    OVERWRITE = "INSERT OVERWRITE / TRUNCATE"
    INSERT = "INSERT INTO"
    UPDATE = "UPDATE / DELETE"
    MINOR = "MINOR COMPACT"
    MAJOR = "MAJOR COMPACT"
    SMALL_FILES = "Small file MERGE"


# "Earlier job | Later job | Outcome" of the page on Delta tables.
DELTA_TABLE: dict[Heading, dict[Heading, str]] = {
    Heading.OVERWRITE: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: FAILS,
        Heading.UPDATE: FAILS,
        Heading.MINOR: FAILS,
        Heading.MAJOR: FAILS,
    },
    Heading.INSERT: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: FAILS,
        Heading.UPDATE: FAILS,
        Heading.MINOR: BOTH,
        Heading.MAJOR: FAILS,
    },
    Heading.UPDATE: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: FAILS,
        Heading.UPDATE: FAILS,
        Heading.MINOR: BOTH,
        Heading.MAJOR: FAILS,
    },
    Heading.MINOR: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: BOTH,
        Heading.UPDATE: BOTH,
        Heading.MINOR: FAILS,
        Heading.MAJOR: BOTH,
    },
    Heading.MAJOR: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: BOTH,
        Heading.UPDATE: BOTH,
        Heading.MINOR: FAILS,
        Heading.MAJOR: FAILS,
    },
}

# "Conflict outcome matrix" of the page on ACID semantics, transactional tables.
TRANSACTIONAL_TABLE: dict[Heading, dict[Heading, str]] = {
    earlier: {
        Heading.OVERWRITE: BOTH,
        Heading.INSERT: BOTH,
        Heading.UPDATE: FAILS,
        Heading.SMALL_FILES: FAILS,
    }
    for earlier in (Heading.OVERWRITE, Heading.INSERT, Heading.UPDATE, Heading.SMALL_FILES)
}


@dataclass(frozen=True)
class Page:
    """A matrix, and the letter that its cells are numbered with, row by row."""

    letter: str
    outcomes: dict[Heading, dict[Heading, str]]

    def heading(self, heading: Heading) -> Heading:
        """Return how this page calls a kind of job: one of them knows one compaction only."""
        compaction = heading in (Heading.MINOR, Heading.MAJOR, Heading.SMALL_FILES)
        if compaction and Heading.SMALL_FILES in self.outcomes:
            return Heading.SMALL_FILES
        return Heading.MINOR if heading is Heading.SMALL_FILES else heading

    def outcome(self, earlier: Heading, later: Heading) -> str:
        return self.outcomes[self.heading(earlier)][self.heading(later)]

    def cell(self, earlier: Heading, later: Heading) -> str:
        """Return a cell's number, such as D7."""
        order = list(self.outcomes)
        row, column = order.index(self.heading(earlier)), order.index(self.heading(later))
        return f"{self.letter}{row * len(order) + column + 1}"


PAGES = {
    "maxcompute_delta": Page("D", DELTA_TABLE),
    "maxcompute_transactional": Page("T", TRANSACTIONAL_TABLE),
}


@dataclass(frozen=True)
class Winner:
    """A job that committed earlier and changed a partition which the later job covers."""

    version: int
    heading: Heading


@dataclass(frozen=True)
class Verdict:
    """The required outcome of a job.

    Attributes:
        lost_to: the version of the first earlier job that it must fail after, None if it succeeds
        cell: that job's cell
        passed: the versions of the overlapping jobs that it passed, in order, if it succeeds

    """

    lost_to: int | None = None
    cell: str | None = None
    passed: tuple[int, ...] = ()


def verdict(page: Page, winners: Sequence[Winner], later: Heading) -> Verdict:
    """Judge a job against every earlier one that it overlaps with, in order of version."""
    for earlier in winners:
        if page.outcome(earlier.heading, later) == FAILS:
            return Verdict(earlier.version, page.cell(earlier.heading, later))
    return Verdict(passed=tuple(earlier.version for earlier in winners))
