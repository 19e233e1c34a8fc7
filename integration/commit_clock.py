"""A gate before a commit that also measures the commit behind it."""

from __future__ import annotations

import threading
import time
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

WAIT_SECONDS = 300


class CommitClock:
    """Holds a statement's transaction before its commit, and takes the time of the commit.

    The time runs from the first try to write the version until a version is written, so it has
    the check for conflicts in it and neither the statement's own work nor what follows the commit.

    Attributes:
        seconds: what the commit took
        jobs: the Spark jobs that ran meanwhile

    """

    def __init__(self, spark: SparkSession) -> None:
        start: Any = ensure_callback_server_started
        start(spark.sparkContext._gateway)
        jvm: Any = spark._jvm
        self._spark = spark
        self._observers = jvm.org.apache.spark.sql.delta.TransactionExecutionObserver
        self._arrived = threading.Event()
        self._opened = threading.Event()
        self._start = 0.0
        self._jobs_before = 0
        self.seconds = 0.0
        self.jobs = 0

    def hold(self, statement: str) -> threading.Thread:
        """Run a statement on a thread of its own, up to its commit."""
        thread = threading.Thread(target=self._run, args=(statement,))
        thread.start()
        assert self._arrived.wait(WAIT_SECONDS), f"{statement} did not come to its commit"
        return thread

    def open(self, thread: threading.Thread) -> None:
        """Let the statement commit and end."""
        self._opened.set()
        thread.join()
        assert self.seconds, "the statement made no version"

    def _run(self, statement: str) -> None:
        before = self._observers.getObserver()
        self._observers.setObserver(self)
        try:
            self._spark.sql(statement)
        finally:
            self._observers.setObserver(before)
            self._arrived.set()

    def _jobs(self) -> int:
        return len(self._spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    # What follows is called by the JVM, under the names of Delta's interface.

    def startingTransaction(self, make: Any) -> Any:  # noqa: N802
        return make.apply()

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        self._arrived.set()
        self._opened.wait(WAIT_SECONDS)
        return prepare.apply()

    def createChild(self) -> CommitClock:  # noqa: N802
        return self

    def beginDoCommit(self) -> None:  # noqa: N802
        self._jobs_before = self._jobs()
        self._start = time.perf_counter()

    def beginPostCommit(self) -> None:  # noqa: N802
        if not self.seconds:
            self.seconds = time.perf_counter() - self._start
            self.jobs = self._jobs() - self._jobs_before

    def beginBackfill(self) -> None: ...  # noqa: N802

    def transactionCommitted(self) -> None: ...  # noqa: N802

    def transactionAborted(self) -> None: ...  # noqa: N802

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)
