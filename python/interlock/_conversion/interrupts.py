"""Ctrl-C during a statement of classic PySpark: it cancels the statement's jobs.

PySpark's handler of SIGINT means to cancel all jobs, but it asks for it on the connection on which
the statement's own answer is awaited, so nothing is cancelled; a notebook's handler does not even
ask. In both cases `KeyboardInterrupt` is raised in the thread that waits for the JVM, and there the
jobs are cancelled. Spark Connect's client interrupts its operation by itself.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 10.0


def install() -> None:
    """Install the cancellation in this Python process; calling it again changes nothing."""
    from py4j.clientserver import JavaClient

    previous = JavaClient.send_command
    if getattr(previous, "is_interlock", False):
        return

    def send_command(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return previous(self, *args, **kwargs)
        except KeyboardInterrupt:
            _close(self.get_thread_connection())
            _cancel()
            raise

    send_command.is_interlock = True  # type: ignore[attr-defined]
    JavaClient.send_command = send_command


def _close(connection: Any) -> None:
    """Give up the connection that the interrupt left half-read: the next call makes a new one."""
    if connection is not None:
        connection.close(reset=True)


def _cancel() -> None:
    """Cancel the jobs that run, on a connection of its own, hence a thread."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None and SparkContext._active_spark_context is not None:
        cancelling = Thread(target=_cancel_jobs, args=(session,), daemon=True)
        cancelling.start()
        cancelling.join(_SECONDS)


def _cancel_jobs(session: SparkSession) -> None:
    """Cancel all jobs but those of streaming queries.

    `SparkSession.interruptAll` would miss what a command does behind its first query, since Spark
    takes the session's tag away when that query ends.
    """
    context = session.sparkContext
    jobs = context.statusTracker()
    running = set(jobs.getActiveJobsIds())  # first: a stream may start a job at any time
    # Of all sessions: `session.streams` knows its own only. One that ends meanwhile is None.
    queries: Any = session._jsparkSession.sharedState().activeStreamingQueries()
    streams = [query.runId().toString() for query in queries.values() if query is not None]
    kept = {job for run in streams for job in jobs.getJobIdsForGroup(run)}
    for job in running - kept:
        context._jsc.sc().cancelJob(job)
