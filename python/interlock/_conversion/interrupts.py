"""Ctrl-C during a statement of classic PySpark: it cancels the statement's jobs.

PySpark's handler of SIGINT tries to cancel all jobs, but on the connection that is waiting for the
statement's answer, so nothing is cancelled; a notebook's handler does not try. In both cases
`KeyboardInterrupt` is raised in the thread that waits for the JVM, and there the
jobs are cancelled. Spark Connect's client interrupts its operation by itself.

Before 4.2 PySpark's handler raises what becomes of its try, and not `KeyboardInterrupt`.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 10.0
_LISTING_MILLIS = 2_000


def install() -> None:
    """Install the cancellation in this Python process; calling it again changes nothing."""
    from py4j.clientserver import JavaClient
    from pyspark import SparkContext

    send, cancel_all = JavaClient.send_command, SparkContext.cancelAllJobs
    if getattr(send, "is_interlock", False):
        return

    def send_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return send(self, *args, **kwargs)
        except KeyboardInterrupt:
            _close(self.get_thread_connection())
            _cancel()
            raise

    def cancel_all_jobs(self: Any) -> None:
        in_handler = sys._getframe(1).f_code.co_name == "signal_handler"
        with suppress(Exception) if in_handler else nullcontext():
            cancel_all(self)

    send_command.is_interlock = True  # type: ignore[attr-defined]
    JavaClient.send_command = send_command
    SparkContext.cancelAllJobs = cancel_all_jobs  # type: ignore[method-assign]


def _close(connection: Any) -> None:
    """Drop the connection whose answer was left half-read; the next call makes a new one."""
    if connection is not None:
        connection.close(reset=True)


def _cancel() -> None:
    """Cancel the running jobs from a new thread, which has its own connection."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None and SparkContext._active_spark_context is not None:
        cancelling = Thread(target=_cancel_jobs, args=(session,), daemon=True)
        cancelling.start()
        cancelling.join(_SECONDS)


def _cancel_jobs(session: SparkSession) -> None:
    """Cancel all statements but those of streaming queries: those that wait, and all jobs.

    Spark lists its jobs by events, which may come late on a busy machine.
    """
    from py4j.protocol import Py4JJavaError

    _cancel_known(session)
    with suppress(Py4JJavaError):  # TimeoutException
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_LISTING_MILLIS)
    _cancel_known(session)


def _cancel_known(session: SparkSession) -> None:
    """Cancel the jobs that Spark lists, and then the statements that wait."""
    jvm: Any = session._jvm
    try:
        _cancel_listed(session)
    finally:
        with suppress(TypeError):  # a JVM without Interlock
            jvm.io.interlock.spark.claims.Claims.interruptWaiting()


def _cancel_listed(session: SparkSession) -> None:
    """Cancel the jobs that Spark lists.

    `SparkSession.interruptAll` would miss a command's work after its first query, since Spark
    removes the session's tag when that query ends.
    """
    context = session.sparkContext
    jobs = context.statusTracker()
    running = set(jobs.getActiveJobsIds())  # first: a stream may start a job at any time
    # The queries of all sessions, unlike `session.streams`. One that ends meanwhile is None.
    queries: Any = session._jsparkSession.sharedState().activeStreamingQueries()
    streams = [query.runId().toString() for query in queries.values() if query is not None]
    kept = {job for run in streams for job in jobs.getJobIdsForGroup(run)}
    for job in running - kept:
        context._jsc.sc().cancelJob(job)
