"""Races: concurrent jobs whose commits are made in a given order.

    first, second = interlock.race(
        spark,
        "UPDATE trips SET city = 'Bergen' WHERE id = 1",
        "UPDATE trips SET city = 'Roma' WHERE id = 2",
    )
    print(first.ok, second.ok, second.error)

All jobs read the table as it was before the first of them committed. Each runs on a thread of its
own. Before the first job commits, every other job is stopped at a gate in the JVM, after it has
written its data and before it commits; then one after the other may go on. There are no sleeps: the
driver waits until jobs arrive at their gates and end.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from interlock import _arguments
from interlock.errors import NO_INTERLOCK, ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_MILLIS = 50


@dataclass(frozen=True)
class Job:
    """One side of a race.

    Attributes:
        name: what results call it
        run: the work, which gets the session; its return value is ignored
        session: the session it gets, if it is not the race's

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
        version: the version of the table that it made, None if it made none (or if that was not
            asked for)
        held: whether it was stopped at its gate; the first job never is
        seconds: from its start to its end, including the time at the gate

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
    *jobs: str | Callable[[SparkSession], object] | Job,
    latest_version: Callable[[], int] | None = None,
) -> tuple[JobResult, ...]:
    """Run jobs at the same time and let them commit in the order given.

    All read the table before the first of them commits. A job that ends or fails before its commit
    does not stop the others. There is no deadline for a running job, since its time depends on the
    machine.

    Args:
        spark: a session of classic PySpark, with Interlock
        jobs: each a statement of SQL, a function of the session, or a `Job`; at least one. A
            SELECT is analysed and not run
        latest_version: reads the table's latest version; fills `JobResult.version`

    Returns:
        how each job ended, in the same order

    Raises:
        interlock.ArgumentError: there is no job, or one is of another type
        interlock.ConfigurationError: the session is one of Spark Connect, or has no Interlock

    """
    if not jobs:
        raise _arguments.refused("jobs", "at least one statement, function or Job", jobs)
    first, *others = map(_as_job, jobs)
    _gate(first.session or spark)
    versions = _Versions(latest_version)
    held = [_HeldJob(spark, job) for job in others]
    with ThreadPoolExecutor(max_workers=len(jobs)) as threads:
        try:
            for other in held:
                other.start(threads)
            for other in held:
                other.await_arrival()
            results = [_result(_run(spark, first), versions, held=False)]
            for other in held:
                results.append(_result(other.let_go(), versions, held=other.arrived))
        except BaseException:  # an interrupt too: nobody is to commit out of order
            for other in held:
                other.gate.refuse()
            raise
    return tuple(results)


def _as_job(given: object) -> Job:
    if isinstance(given, Job):
        return given
    if isinstance(given, str):
        return Job(given, lambda spark: spark.sql(given))
    if callable(given):
        return Job(getattr(given, "__name__", repr(given)), given)
    raise _arguments.refused("jobs", "statements, functions or Jobs", given)


def _gate(spark: SparkSession) -> Any:
    """Make a gate, which a thread of the JVM can be held at."""
    from py4j.java_gateway import JavaPackage

    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        raise ConfigurationError(
            "A race needs a classic session: it holds threads of the driver's JVM, which Spark "
            "Connect does not reach. Run it where the driver is."
        )
    gate = jvm.io.interlock.spark.PhaseGate
    if isinstance(gate, JavaPackage):  # there is no such class
        raise ConfigurationError(NO_INTERLOCK)
    return gate()


class _HeldJob:
    """A job on a thread of its own, behind a gate."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.job = job
        self.gate = _gate(job.session or spark)
        self.arrived = False
        self._spark = spark
        self._end: Future[JobResult]

    def start(self, threads: ThreadPoolExecutor) -> None:
        """Let the job run up to its gate."""
        self._end = threads.submit(self._run_behind_gate)

    def await_arrival(self) -> None:
        """Wait until the job is at its gate, or has ended before."""
        while not self.arrived and not self._end.done():
            self.arrived = self.gate.awaitArrival(_POLL_MILLIS)

    def let_go(self) -> JobResult:
        """Open the gate and wait for the job's end."""
        self.gate.open()
        return self._end.result()

    def _run_behind_gate(self) -> JobResult:
        self.gate.install()
        try:
            return _run(self._spark, self.job)
        finally:
            self.gate.uninstall()


def _run(spark: SparkSession, job: Job) -> JobResult:
    """Run a job; its version and whether it was held are filled in by `_result`."""
    start = time.monotonic()
    error = None
    try:
        result = job.run(job.session or spark)
        if isinstance(result, Generator | Coroutine):
            result.close()
        if isinstance(result, AsyncGenerator | Generator | Coroutine):
            raise _arguments.refused("a job", "a function that does its work", job.run)
    except Exception as raised:
        error = raised
    return JobResult(job.name, error, None, held=False, seconds=time.monotonic() - start)


def _result(end: JobResult, versions: _Versions, *, held: bool) -> JobResult:
    return replace(end, version=versions.made_by_last(), held=held)


class _Versions:
    """Finds out which version each job made, as the jobs end one after the other."""

    def __init__(self, latest: Callable[[], int] | None) -> None:
        self._latest = latest
        self._known = latest() if latest else 0

    def made_by_last(self) -> int | None:
        if self._latest is None:
            return None
        before, self._known = self._known, self._latest()
        return self._known if self._known > before else None
