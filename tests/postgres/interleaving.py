"""Runs the steps of several database sessions in a given order.

A call that waits for another session's lock is left waiting. PostgreSQL says which sessions wait
(pg_blocking_pids) and decides which it wakes first. A step that is due while its session waits is
therefore taken as soon as the session has got its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from tests.postgres.coordinator_sql import Call
from tests.postgres.postgres import Connection

END = 30.0
"""Seconds after which an answer, or a lock that is waited for, is overdue."""

Step = tuple[Call | str, ...]
"""Calls and statements that a session takes in one go."""


@dataclass
class Session:
    """A connection with autocommit, and the steps that it has yet to take."""

    connection: Connection
    thread: ThreadPoolExecutor
    steps: list[Step] = field(default_factory=list)
    waiting: Future[Any] | None = None
    replies: list[Any] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it has had an answer and has not ended its transaction."""
        return bool(self.replies and self.steps) and self.waiting is None

    def submit(self) -> None:
        step = self.steps.pop(0)
        self.waiting = self.thread.submit(self._take, step)

    def _take(self, step: Step) -> None:
        for part in step:
            if isinstance(part, str):
                self.connection.execute(part)
            else:
                self.replies.append(part(self.connection))


def orders(sessions: int, *, steps: int, lock: int) -> Iterator[tuple[int, ...]]:
    """Every order of the steps that is possible: each session takes the same lock in its step
    `lock`, and its steps after that one come when it holds the lock."""
    for order in _orders([steps] * sessions):
        taken, queue = [0] * sessions, []
        for turn in order:
            if taken[turn] == lock:
                queue.append(turn)
            elif taken[turn] > lock and queue[0] != turn:
                break
            taken[turn] += 1
            if taken[turn] == steps:
                queue.remove(turn)
        else:
            yield order


def _orders(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every order of `counts[i]` steps of each session i that keeps a session's own order."""
    if not any(counts):
        yield ()
    for session, count in enumerate(counts):
        if count:
            rest = [*counts[:session], count - 1, *counts[session + 1 :]]
            for order in _orders(rest):
                yield (session, *order)


def run(
    sessions: Sequence[Session],
    steps: Sequence[Sequence[Step]],
    order: Sequence[int],
    monitor: Connection,
) -> list[int]:
    """Take the steps; return the sessions in the order of their first answers."""
    answered: list[int] = []
    sessions = sessions[: len(steps)]
    for session, own in zip(sessions, steps, strict=True):
        session.steps, session.replies = list(own), []
    due = [0] * len(sessions)
    for turn in order:
        due[turn] += 1
        while _take_one(sessions, due, monitor):
            answered += [i for i, s in enumerate(sessions) if s.replies and i not in answered]
    assert due == [0] * len(sessions)
    return answered


def _take_one(sessions: Sequence[Session], due: list[int], monitor: Connection) -> bool:
    """Take a step that is due and not blocked, and wait until every session is idle or blocked."""
    for i, session in enumerate(sessions):
        if due[i] and session.waiting is None:
            due[i] -= 1
            session.submit()
            _settle(sessions, monitor)
            return True
    return False


def _settle(sessions: Sequence[Session], monitor: Connection) -> None:
    deadline = monotonic() + END
    while not (
        all(_settled(session, monitor) for session in sessions)
        and (any(s.holds for s in sessions) or not any(s.waiting for s in sessions))
    ):
        assert monotonic() < deadline, "neither an answer nor a lock that is waited for"


def _settled(session: Session, monitor: Connection) -> bool:
    if session.waiting is None:
        return True
    try:
        session.waiting.result(timeout=0.002)
    except NotYet:
        pid = session.connection.info.backend_pid
        return monitor.execute("SELECT pg_blocking_pids(%s)", [pid]).fetchone() != ([],)
    session.waiting = None
    return True
