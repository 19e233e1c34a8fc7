"""Runs jobs at the same time and forces the order of their commits.

    done = race(spark, earlier, later)            # both read one version; `earlier` commits first
    done = run_in_order(spark, [a, b, c])         # all read one version; they commit a, b, c

Every job runs on a thread of its own. Every job but the first stands at a gate, which the JVM holds
between "data written" and "commit", before the first commits; then one after the other is let go.
Nothing sleeps: the driver waits for arrivals and for ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_MILLIS = 50


@dataclass(frozen=True)
class Job:
    """Something to run against a session.

    Attributes:
        name: what results call it
        run: the work; its return value is ignored
        session: the session it gets, where that is not the one of the race

    """

    name: str
    run: Callable[[SparkSession], object]
    session: SparkSession | None = None


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    Attributes:
        name: the job's name
        error: what it raised, None if it succeeded
        version: the version of the table that it made, None if it made none (or nobody asked)
        held: whether it stood at its gate; a first job never does
        seconds: from its start to its end, the time at the gate included

    """

    name: str
    error: Exception | None
    version: int | None
    held: bool
    seconds: float

    @property
    def ok(self) -> bool:
        """Tell whether it succeeded."""
        return self.error is None


def race(
    spark: SparkSession,
    earlier: Job,
    later: Job,
    *,
    latest_version: Callable[[], int] | None = None,
) -> tuple[JobResult, JobResult]:
    """Let `earlier` commit between the moment `later` has written its data and its commit."""
    first, second = run_in_order(spark, [earlier, later], latest_version=latest_version)
    return first, second


def run_in_order(
    spark: SparkSession,
    jobs: Sequence[Job],
    *,
    latest_version: Callable[[], int] | None = None,
) -> tuple[JobResult, ...]:
    """Run `jobs` from one version of the table, with commits in the given order.

    A job that ends or fails before it reaches its gate holds nobody up. One that lives is waited
    for, however slow the machine.

    Args:
        spark: the session of jobs that bring none of their own
        jobs: at least one, the first commits first
        latest_version: reads the table's latest version; fills `JobResult.version`

    """
    versions = _Versions(latest_version)
    held = [_HeldJob(spark, job) for job in jobs[1:]]
    with ThreadPoolExecutor(max_workers=len(jobs)) as threads:
        try:
            for other in held:
                other.start(threads)
            for other in held:
                other.await_arrival()
            results = [_result(jobs[0], _run(spark, jobs[0]), versions, held=False)]
            for other in held:
                results.append(_result(other.job, other.let_go(), versions, held=other.arrived))
        finally:
            for other in held:
                other.gate.open()
    return tuple(results)


class _HeldJob:
    """A job on a thread of its own, behind a gate."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.job = job
        jvm: Any = spark._jvm
        self.gate = jvm.io.interlock.spark.PhaseGate()
        self.arrived = False
        self._spark = spark
        self._end: Future[_End]

    def start(self, threads: ThreadPoolExecutor) -> None:
        """Let the job run up to its gate."""
        self._end = threads.submit(self._run_behind_gate)

    def await_arrival(self) -> None:
        """Wait until the job stands at its gate, or has ended without getting there."""
        while not self.arrived and not self._end.done():
            self.arrived = self.gate.awaitArrival(_POLL_MILLIS)

    def let_go(self) -> _End:
        """Open the gate and wait for the job's end."""
        self.gate.open()
        return self._end.result()

    def _run_behind_gate(self) -> _End:
        self.gate.install()
        try:
            return _run(self._spark, self.job)
        finally:
            self.gate.uninstall()


@dataclass(frozen=True)
class _End:
    error: Exception | None
    seconds: float


def _run(spark: SparkSession, job: Job) -> _End:
    start = time.monotonic()
    error = None
    try:
        job.run(job.session or spark)
    except Exception as raised:
        error = raised
    return _End(error, time.monotonic() - start)


def _result(job: Job, end: _End, versions: _Versions, *, held: bool) -> JobResult:
    return JobResult(job.name, end.error, versions.made_by_last(), held, end.seconds)


class _Versions:
    """Notices which version each job made, as the jobs end one after the other."""

    def __init__(self, latest: Callable[[], int] | None) -> None:
        self._latest = latest
        self._known = latest() if latest else 0

    def made_by_last(self) -> int | None:
        if self._latest is None:
            return None
        before, self._known = self._known, self._latest()
        return self._known if self._known > before else None
