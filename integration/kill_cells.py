"""The kill points, the faults, and which of their pairs mean something.

A pair that means nothing has a reason; one that means something is run or is reported as not run.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

INSERT = "INSERT INTO {t} VALUES (10)"
DELETE = "DELETE FROM {t} WHERE id = 2"
COMPACT = "ALTER TABLE {t} COMPACT MAJOR"
VACUUM = "VACUUM {t}"


class Fault(enum.Enum):
    """What goes wrong at a point."""

    KILL = "kill -9"
    PAUSE = "pause"
    BEFORE = "exception before"
    AFTER = "exception after"
    DISK_FULL = "disk full"
    CLOSE = "I/O error on close"
    RESTART = "Postgres stopped"
    TERMINATE = "connection terminated"
    CUT = "TCP cut after COMMIT"
    RESTORE = "database restored"
    AHEAD = "clock +1 h"
    BEHIND = "clock -1 h"


CONNECTION_FAULTS = (Fault.RESTART, Fault.TERMINATE, Fault.CUT)
DATABASE_FAULTS = (*CONNECTION_FAULTS, Fault.RESTORE)
CLOCK_FAULTS = (Fault.AHEAD, Fault.BEHIND)


@dataclass(frozen=True)
class Point:
    """A moment in the life of a commit.

    Attributes:
        name: K1 to K12
        text: what has happened when it is reached
        hold: where `Faults` holds the statement
        before: where it throws for an exception before, None if that is another point's
        after: where it throws for an exception after, None if that is another point's
        close: where it throws for an error on close, None if nothing is closed through Hadoop
        writes: where the disk is filled, None if nothing is written
        statement: that comes to the point
        policy: of its table
        beside: what another process does while the statement stands at its commit
        timed: whether the clock is read after the point
        background: whether the statement does not wait for it
        checkpoint: whether the statement's version is one for a checkpoint

    """

    name: str
    text: str
    hold: str
    before: str | None = None
    after: str | None = None
    close: str | None = None
    writes: str | None = None
    statement: str = INSERT
    policy: str = "maxcompute_transactional"
    beside: str | None = None
    timed: bool = False
    background: bool = False
    checkpoint: bool = False
    properties: dict[str, str] = field(default_factory=dict)


_VECTORS = {"delta.enableDeletionVectors": "true"}

POINTS = (
    Point(
        *("K1", "data written", "data.close", "data.create", "data.close", "data.close"),
        writes="data.create",
    ),
    Point("K2", "before staging", "staging", before="staging", writes="staging"),
    Point("K3", "after staging", "staged", after="staged"),
    Point("K4", "ratify sent without reply", "ratifying", before="ratifying"),
    Point("K5", "committed in the database before the client knows", "ratified", after="ratified"),
    Point("K6", "before publish", "publishing", before="publishing", writes="publishing"),
    Point("K7", "during publish", "linked", after="linked"),
    Point("K8", "after publish", "published", after="published", timed=True),
    Point(
        *("K9", "before checkpoint", "checkpoint.create", "checkpoint.create"),
        *("checkpoint.close", "checkpoint.close", "checkpoint.create"),
        timed=True,
        background=True,
        checkpoint=True,
    ),
    Point(
        *("K10", "inside a rebase", "vector.create", "vector.create"),
        *("vector.close", "vector.close", "vector.create", DELETE, "maxcompute_delta"),
        beside="ALTER TABLE {t} COMPACT MINOR",
        timed=True,
        properties=_VECTORS,
    ),
    Point(
        *("K11", "during compaction commit", "publishing", "staging", "published"),
        *("data.close", "data.create", COMPACT, "maxcompute_delta"),
        timed=True,
        properties=_VECTORS,
    ),
    Point(
        *("K12", "during VACUUM", "data.delete", "data.delete"),
        statement=VACUUM,
        timed=True,
    ),
)


@dataclass(frozen=True)
class Cell:
    """One point and one fault."""

    point: Point
    fault: Fault

    def __str__(self) -> str:
        return f"{self.point.name}: {self.fault.value}"


def cells() -> list[Cell]:
    return [Cell(point, fault) for point in POINTS for fault in Fault]


def cell(name: str, fault: Fault) -> Cell:
    return Cell(next(point for point in POINTS if point.name == name), fault)


def not_applicable(cell: Cell, *, database: bool, remote: bool) -> str | None:
    """Return why a pair means nothing; None if it means something.

    Args:
        database: whether the table is bound to one
        remote: whether the table is on no disk of this machine

    """
    point, fault = cell.point, cell.fault
    if not database and (fault in DATABASE_FAULTS or point.name in ("K4", "K5")):
        return "no database"
    if remote and fault is Fault.DISK_FULL:
        return "no disk of this machine is written"
    if fault is Fault.BEFORE and point.before is None:
        return "what is before this point is after another"
    if fault is Fault.AFTER and point.after is None:
        return "what is after this point is before another"
    if fault is Fault.DISK_FULL and point.writes is None:
        return "nothing is written here"
    if fault is Fault.CUT and point.name not in ("K4", "K5"):
        return "no COMMIT is on its way here"
    if fault in (Fault.RESTART, Fault.TERMINATE, Fault.RESTORE) and point.name in ("K9", "K12"):
        return "the database is not asked here"
    if fault in CLOCK_FAULTS and not point.timed:
        return "a statement has one clock: run at K8"
    return None


def not_runnable(cell: Cell, *, remote: bool) -> str | None:
    """Return why a pair that means something cannot be run anywhere; None if it can."""
    if cell.fault is Fault.CLOSE and cell.point.close is None:
        how = "a commit is not written by `FileSystem.create`" if remote else "java.nio closes it"
        return f"{how}, so no close fails on demand; K3, exception after, is its like"
    return None
