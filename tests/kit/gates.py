"""A gate for another transaction of a thread than the first, which `PhaseGate` holds.

Work that Delta does after a commit on the committing thread, such as auto compaction, is the
second.
"""

from __future__ import annotations

import threading
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

WAIT_SECONDS = 60


class SecondTransactionGate:
    """Stops the second transaction of a thread after its data is written and before its commit."""

    def __init__(self, spark: SparkSession) -> None:
        start: Any = ensure_callback_server_started
        start(spark.sparkContext._gateway)
        jvm: Any = spark._jvm
        self._observers = jvm.org.apache.spark.sql.delta.TransactionExecutionObserver
        self._before: Any = None
        self._prepared = 0
        self._arrived = threading.Event()
        self._opened = threading.Event()

    def install(self) -> None:
        """Install the gate on the calling thread."""
        self._before = self._observers.getObserver()
        self._observers.setObserver(self)

    def uninstall(self) -> None:
        """Remove it from the calling thread."""
        self._observers.setObserver(self._before)

    def await_arrival(self) -> None:
        assert self._arrived.wait(WAIT_SECONDS), "no second transaction came to its commit"

    def open(self) -> None:
        self._opened.set()

    # What follows is called by the JVM, under the names of Delta's interface.

    def startingTransaction(self, make: Any) -> Any:  # noqa: N802
        return make.apply()

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        self._prepared += 1
        if self._prepared == 2:
            self._arrived.set()
            self._opened.wait(WAIT_SECONDS)
        return prepare.apply()

    def createChild(self) -> SecondTransactionGate:  # noqa: N802
        return self

    def beginDoCommit(self) -> None: ...  # noqa: N802

    def beginBackfill(self) -> None: ...  # noqa: N802

    def beginPostCommit(self) -> None: ...  # noqa: N802

    def transactionCommitted(self) -> None: ...  # noqa: N802

    def transactionAborted(self) -> None: ...  # noqa: N802

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)
