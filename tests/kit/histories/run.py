"""Runs a history: every job reads and commits at the planned time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tests.kit.gates import StagedGate, phase_gate
from tests.kit.histories.generate import Planned
from tests.kit.histories.model import Job
from tests.kit.support import Table, latest_version

PATIENCE_SECONDS = 60
_POLL_MILLIS = 20


@dataclass(frozen=True)
class Ended:
    """How a job ended.

    Attributes:
        read: the latest version when it started
        error: what it raised
        version: the version it made, None where it made none
        held: whether it was stopped before its commit
        result: the row that the statement returned, if it returned one

    """

    read: int
    error: Exception | None
    version: int | None
    held: bool
    result: dict[str, Any]


class Runner:
    """Runs histories in a session, and in others for jobs with settings of their own.

    Args:
        spark: the session
        gate: makes the gate at which a job waits for its turn

    """

    def __init__(
        self, spark: SparkSession, gate: Callable[[SparkSession], Any] = phase_gate
    ) -> None:
        self._gate = gate
        self._sessions: dict[tuple[tuple[str, str], ...], SparkSession] = {(): spark}

    def run(
        self,
        jobs: Sequence[Planned],
        table: Table,
        after_commit: Callable[[], None] = lambda: None,
    ) -> tuple[Ended, ...]:
        """Return how each job ended, in the order of their commits.

        Args:
            jobs: the history
            table: on which it happens
            after_commit: called when a job has made a version, while others wait for their turn

        """
        count = len(jobs)
        held: dict[int, _Held] = {}
        ends: list[Ended] = []
        with ThreadPoolExecutor(count) as threads:
            try:
                for turn in range(count):
                    latest = latest_version(table)
                    for index, planned in enumerate(jobs):
                        if planned.pin == turn and planned.job.by_hand is None:
                            session = self._session(planned.job)
                            held[index] = _Held(threads, session, planned.job, table, self._gate)
                            held[index].await_arrival()
                    for index, planned in enumerate(jobs):
                        if planned.job.steps is not None and planned.begins == turn:
                            held[index].begin()
                    assert latest_version(table) == latest, "a held job made a version"
                    by_hand = jobs[turn].job.by_hand
                    if by_hand is None:
                        ends.append(held[turn].end(table))
                    else:
                        by_hand(table)
                        ends.append(_ended_by_hand(latest, table))
                    if ends[-1].version is not None:
                        after_commit()
            finally:
                for job in held.values():
                    job.gate.open()
        return tuple(ends)

    def _session(self, job: Job) -> SparkSession:
        if job.settings not in self._sessions:
            session = self._sessions[()].newSession()
            for key, value in job.settings:
                session.conf.set(key, value)
            self._sessions[job.settings] = session
        return self._sessions[job.settings]


def _ended_by_hand(read: int, table: Table) -> Ended:
    version = latest_version(table)
    return Ended(read, None, version if version > read else None, held=False, result={})


class _Held:
    """A job on a thread of its own, behind a gate."""

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        session: SparkSession,
        job: Job,
        table: Table,
        gate: Callable[[SparkSession], Any],
    ) -> None:
        self.gate = gate(session) if job.steps is None else StagedGate(session)
        self._job = job
        self._table = table
        self._read = latest_version(table)
        self._arrived = False
        self._sql = job.sql.format(t=table)
        self._end: Future[dict[str, Any]] = threads.submit(self._work, session)

    def await_arrival(self) -> None:
        """Wait until the job is stopped before its commit, or has ended before.

        One with steps is stopped before its transaction begins.
        """
        if self._job.steps is None:
            self._arrived = self._await(self.gate.awaitArrival)
        else:
            self._await(self.gate.awaitRead)

    def begin(self) -> None:
        """Let the transaction of a job with steps begin, and wait until it is at its commit."""
        self.gate.begin()
        self._arrived = self._await(self.gate.awaitArrival)

    def _await(self, stop: Callable[[int], bool]) -> bool:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not (stopped := stop(_POLL_MILLIS)) and not self._end.done():
            assert time.monotonic() < give_up, f"{self._sql} did not come to its commit"
        return stopped

    def end(self, table: Table) -> Ended:
        """Let the job go on, to its end."""
        before = latest_version(table)
        self.gate.open()
        error = self._end.exception()
        assert error is None or isinstance(error, Exception)
        after = latest_version(table)
        assert after in (before, before + 1), f"{self._sql} made several versions"
        version = after if after > before else None
        result = {} if error else self._end.result()
        return Ended(self._read, error, version, self._arrived, result)

    def _work(self, session: SparkSession) -> dict[str, Any]:
        self.gate.install()
        try:
            if self._job.steps is not None:
                self._job.steps(session, self._table, self.gate.pause)
                return {}
            found = session.sql(self._sql).collect()
        finally:
            self.gate.uninstall()
        return found[0].asDict(recursive=True) if len(found) == 1 else {}
