"""Every interleaving of two and of three sessions that call the coordinator at the same time.

The oracle is the serial order: each interleaving must give the replies and leave the rows that
the same calls give and leave one after the other, in the order in which they were answered. What
the serial orders themselves must hold is checked call by call.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest
from psycopg.rows import namedtuple_row

from tests.postgres.coordinator_sql import (
    Call,
    adopt,
    attach,
    commit,
    listed,
    new_table,
    outcome,
    published,
    quick,
    recreated,
    repair,
    revoke,
    statuses,
    tail,
    winners,
)
from tests.postgres.interleaving import Session, Step, orders, run
from tests.postgres.postgres import Connection, Server

X, Y, Z = (uuid.UUID(int=i) for i in range(3))
"""Stand for the attempts of x, y and z, which are others in each race."""

Make = Callable[[str, dict[uuid.UUID, uuid.UUID]], Call]

# What a session may call. c0 is published, c1 is ratified and waits; x and z found c1 in the
# log, y has not looked, f found another commit there.
CALLS: dict[str, Make] = {
    "x": lambda p, a: commit(p, "x", head=1, head_txn="c1", attempt=a[X]),
    "y": lambda p, a: commit(p, "y1", "y2", head=1, attempt=a[Y]),
    "z": lambda p, a: commit(p, "z", head=1, head_txn="c1", attempt=a[Z]),
    "f": lambda p, a: commit(p, "f", head=1, head_txn="stock"),
    "x again": lambda p, a: commit(p, "x", head=1, head_txn="c1", attempt=a[X]),
    "outcome of x": lambda p, a: outcome(p, a[X]),
    "revoke c1": lambda p, a: revoke(p, 1, "c1"),
    "revoke x": lambda p, a: revoke(p, 2, "x"),
    "c1 published": lambda p, a: published(p, 1, "c1"),
    "adopt": lambda p, a: adopt(p, from_=1, to=2),
    "tail": lambda p, a: tail(p),
    "attach": lambda p, a: attach(p),
    "created anew": lambda p, a: recreated(p, epoch=0, head=1, table="new", log_head=-1),
    "repair": lambda p, a: repair(p, head=1),
}
PAIRS = [
    *combinations(CALLS, 2),
    *((name, name) for name in ("revoke c1", "outcome of x", "adopt", "created anew", "repair")),
]
TRIPLES = [
    ("x", "y", "z"),
    ("x", "z", "revoke c1"),
    ("x", "z", "outcome of x"),
    ("x", "y", "adopt"),
    ("x", "revoke x", "outcome of x"),
    ("x", "y", "c1 published"),
    ("x", "outcome of x", "created anew"),
    ("x", "z", "repair"),
]
COMMITS = ("x", "x again", "y", "z")
# What leaves alone the commits that others made.
HARMLESS = {*COMMITS, "f", "outcome of x", "c1 published", "tail", "attach"}


@dataclass(frozen=True)
class Arena:
    """Three sessions and one that watches them; all as the owner, who may call every function."""

    sessions: list[Session]
    monitor: Connection

    def table(self) -> str:
        with self.monitor.transaction():
            return new_table(self.monitor)

    def rows(self, path: str) -> list[Any]:
        """What the database holds of a table."""
        cursor = self.monitor.cursor(row_factory=namedtuple_row)
        return cursor.execute(
            "SELECT t.epoch, t.sequence, t.table_id, head, published, version, txn_id, content"
            " FROM interlock.tables t LEFT JOIN interlock.commits USING (key)"
            " WHERE log_path = %s ORDER BY version",
            [path],
        ).fetchall()


@pytest.fixture(scope="module")
def arena(postgres: Server) -> Iterator[Arena]:
    with ExitStack() as stack:
        connections = [quick(stack.enter_context(postgres.admin())) for _ in range(4)]
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]
        sessions = [Session(c, t) for c, t in zip(connections, threads, strict=False)]
        yield Arena(sessions, connections[3])


Result = tuple[list[Any], list[Any]]
"""The replies by session, and what the table holds at the end."""


@dataclass
class Race:
    """The same calls, of one session each, on a new table each time."""

    arena: Arena
    names: Sequence[str]
    ends: Sequence[str]

    def __post_init__(self) -> None:
        self._serial: dict[tuple[int, ...], Result] = {}

    def run(self, order: Sequence[int], *, begin: bool) -> tuple[list[int], Result]:
        """`begin` makes BEGIN a step of its own."""
        path, steps = self.arena.table(), []
        attempts = {stand_in: uuid.uuid4() for stand_in in (X, Y, Z)}
        for name, end in zip(self.names, self.ends, strict=True):
            call = CALLS[name](path, attempts)
            beginning: list[Step] = [("BEGIN",), (call,)] if begin else [("BEGIN", call)]
            steps.append([*beginning, (end,)])
        answered = run(self.arena.sessions, steps, order, self.arena.monitor)
        replies = [
            [_without_row_id(reply) for reply in session.replies]
            for session in self.arena.sessions[: len(self.names)]
        ]
        return answered, (replies, self.arena.rows(path))

    def serial(self, order: Sequence[int]) -> Result:
        """The same one after the other."""
        if tuple(order) not in self._serial:
            steps = [turn for turn in order for _ in range(2)]
            answered, result = self.run(steps, begin=False)
            assert answered == list(order)
            _check(self.names, self.ends, result, order)
            self._serial[tuple(order)] = result
        return self._serial[tuple(order)]

    def check(self, *, begin: bool) -> int:
        """Run every interleaving; how many they were."""
        number = 0
        steps, lock = (3, 1) if begin else (2, 0)
        for order in orders(len(self.names), steps=steps, lock=lock):
            answered, result = self.run(order, begin=begin)
            assert sorted(answered) == list(range(len(self.names)))
            assert result == self.serial(answered), (self.names, self.ends, order)
            number += 1
        return number


def _without_row_id(reply: list[Any]) -> list[Any]:
    """Each table has another one."""
    return [row._replace(id=None) if hasattr(row, "id") else row for row in reply]


def _check(names: Sequence[str], ends: Sequence[str], result: Result, order: Sequence[int]) -> None:
    """What must hold of any calls one after the other."""
    replies, rows = result
    harmless = HARMLESS.issuperset(names)
    commits = [row for row in rows if row.version is not None]
    assert [row.version for row in commits] == list(range(len(commits)))
    assert len({row.txn_id for row in commits}) == len(commits)
    won: list[str] = []
    denied = False
    for turn in order:
        (reply,) = replies[turn]
        counts = ends[turn] == "COMMIT"
        if names[turn] == "outcome of x":
            found = statuses(reply) == "committed"
            assert not harmless or found == ("x" in won)
            denied = denied or (counts and not found)
        elif names[turn] in COMMITS:
            assert not (denied and "x" in names[turn] and statuses(reply) == "committed")
            if statuses(reply) == "taken":
                assert listed(reply)[: len(won)] == winners(2, *won)
            if statuses(reply) == "committed" and counts:
                assert listed(reply)[0][0] == 2 + len(won)
                won += [txn for _, txn, _ in listed(reply)]
    if harmless:
        assert listed(commits) == winners(0, "c0", "c1", *won)
        assert rows[0].head == 1 + len(won)


@pytest.mark.variant_cases("16-*")
@pytest.mark.parametrize("names", PAIRS, ids=" + ".join)
def test_two_sessions(arena: Arena, names: tuple[str, str]) -> None:
    assert Race(arena, names, ("COMMIT", "COMMIT")).check(begin=False) == 4


@pytest.mark.parametrize("other", ["y", "z", "revoke c1", "outcome of x", "adopt"])
def test_two_sessions_that_begin_on_their_own(arena: Arena, other: str) -> None:
    assert Race(arena, ("x", other), ("COMMIT", "COMMIT")).check(begin=True) == 14


@pytest.mark.parametrize("names", [("x", "z"), ("x", "y"), ("x", "outcome of x"), ("x", "adopt")])
def test_two_sessions_of_which_one_rolls_back(arena: Arena, names: tuple[str, str]) -> None:
    for ends in (("ROLLBACK", "COMMIT"), ("COMMIT", "ROLLBACK")):
        assert Race(arena, names, ends).check(begin=False) == 4


@pytest.mark.variant_cases("16-*")
@pytest.mark.parametrize("names", TRIPLES, ids=" + ".join)
def test_three_sessions(arena: Arena, names: tuple[str, str, str]) -> None:
    assert Race(arena, names, ("COMMIT",) * 3).check(begin=False) == 30


@pytest.mark.soak
@pytest.mark.parametrize("names", [*PAIRS, *TRIPLES], ids=" + ".join)
def test_sessions_that_begin_on_their_own(arena: Arena, names: tuple[str, ...]) -> None:
    number = {2: 14, 3: 636}[len(names)]
    assert Race(arena, names, ("COMMIT",) * len(names)).check(begin=True) == number


@pytest.mark.parametrize("ends", [("COMMIT", "COMMIT"), ("ROLLBACK", "COMMIT")], ids=" + ".join)
def test_two_sessions_with_two_tables_each(arena: Arena, ends: tuple[str, str]) -> None:
    """Tables are locked in the order of their paths, so one session gets both."""
    for order in orders(2, steps=3, lock=0):
        paths = sorted((arena.table(), arena.table()))
        steps: list[list[Step]] = []
        for txn, end in zip(("x", "z"), ends, strict=True):
            one, two = (commit(path, txn, head=1, head_txn="c1") for path in paths)
            steps.append([("BEGIN", one), (two,), (end,)])
        first, second = run(arena.sessions, steps, order, arena.monitor)
        won = first if ends[first] == "COMMIT" else second
        lost = [statuses(reply) for reply in arena.sessions[second].replies]
        assert lost == (["taken"] * 2 if won == first else ["committed"] * 2)
        for path in paths:
            assert listed(arena.rows(path)) == winners(0, "c0", "c1", ("x", "z")[won])
