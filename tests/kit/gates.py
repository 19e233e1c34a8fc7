"""`PhaseGate`, which holds a thread's first transaction when it has written its data, before its
commit, and gates at other places.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

WAIT_SECONDS = 60
_POLL_MILLIS = 20


def phase_gate(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.io.interlock.spark.PhaseGate()


class _Gate:
    """An observer of a thread's transactions that can hold one of them."""

    def __init__(self, spark: SparkSession) -> None:
        start: Any = ensure_callback_server_started
        start(spark.sparkContext._gateway)
        jvm: Any = spark._jvm
        self._observers = jvm.org.apache.spark.sql.delta.TransactionExecutionObserver
        self._before: Any = None
        self._arrived = threading.Event()
        self._opened = threading.Event()

    def install(self) -> None:
        """Install the gate on the calling thread."""
        self._before = self._observers.getObserver()
        self._observers.setObserver(self)

    def uninstall(self) -> None:
        """Remove it from the calling thread."""
        self._observers.setObserver(self._before)

    def awaitArrival(self, millis: int) -> bool:  # noqa: N802
        """Wait so many milliseconds for a transaction to come; return whether one has."""
        return self._arrived.wait(millis / 1000)

    def open(self) -> None:
        self._opened.set()

    def _hold(self) -> None:
        self._arrived.set()
        self._opened.wait(WAIT_SECONDS)

    # What follows is called by the JVM, under the names of Delta's interface.

    def startingTransaction(self, make: Any) -> Any:  # noqa: N802
        return make.apply()

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        return prepare.apply()

    def createChild(self) -> _Gate:  # noqa: N802
        return self

    def beginDoCommit(self) -> None: ...  # noqa: N802

    def beginBackfill(self) -> None: ...  # noqa: N802

    def beginPostCommit(self) -> None: ...  # noqa: N802

    def transactionCommitted(self) -> None: ...  # noqa: N802

    def transactionAborted(self) -> None: ...  # noqa: N802

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)


class SecondTransactionGate(_Gate):
    """Stops the second transaction of a thread after its data is written and before its commit.

    Work that Delta does after a commit on the committing thread, such as auto compaction, is the
    second.
    """

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._prepared = 0

    def await_arrival(self) -> None:
        assert self.awaitArrival(WAIT_SECONDS * 1000), "no second transaction came to its commit"

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        self._prepared += 1
        if self._prepared == 2:
            self._hold()
        return super().preparingCommit(prepare)


class StartGate(_Gate):
    """Stops the first transaction of a thread when it has the version that it reads, and has read
    and written nothing.
    """

    def startingTransaction(self, make: Any) -> Any:  # noqa: N802
        begun = super().startingTransaction(make)
        if not self._arrived.is_set():
            self._hold()
        return begun


class StagedGate(_Gate):
    """Stops a thread before its first transaction begins, and again before that one commits.

    What the thread has computed, or what it has named a version of, it has read at the first stop.
    """

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._has_read = threading.Event()
        self._begins = threading.Event()

    def pause(self) -> None:
        """Come to the first stop, if no transaction has yet."""
        if not self._has_read.is_set():
            self._has_read.set()
            self._begins.wait(WAIT_SECONDS)

    def awaitRead(self, millis: int) -> bool:  # noqa: N802
        """Wait so many milliseconds for the first stop; return whether it was reached."""
        return self._has_read.wait(millis / 1000)

    def begin(self) -> None:
        """Let it go on from the first stop."""
        self._begins.set()

    def open(self) -> None:
        self.begin()
        super().open()

    def startingTransaction(self, make: Any) -> Any:  # noqa: N802
        self.pause()
        return super().startingTransaction(make)

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        if not self._arrived.is_set():
            self._hold()
        return super().preparingCommit(prepare)


class ReadGate(StagedGate):
    """Stops a thread before its first transaction begins, and nowhere else."""

    def awaitArrival(self, millis: int) -> bool:  # noqa: N802
        return self.awaitRead(millis)


def end_behind(
    spark: SparkSession,
    job: Callable[[], object],
    winners: Callable[[], object],
    gated: Callable[[SparkSession], Any] = StartGate,
) -> BaseException | None:
    """Run the winners when a job is at a gate, and let it go on; return its error."""
    gate = gated(spark)

    def run() -> None:
        gate.install()
        try:
            job()
        finally:
            gate.uninstall()

    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(run)
        try:
            while not gate.awaitArrival(_POLL_MILLIS):
                assert not end.done(), "it ended before it began a transaction"
            winners()
        finally:
            gate.open()
        return end.exception()
