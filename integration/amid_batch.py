"""A batch of commits whose first is held as soon as it can be seen, for a kill amid the batch.

A test runs `hold` in a driver process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from integration.compiled import compiled
from integration.writers import start
from tests.kit.eventually import eventually
from tests.kit.support import threads_in

PATIENCE_SECONDS = 100


def hold(spark: SparkSession, writers: Sequence[dict[str, Any]], folder: str) -> None:
    """Let the first writer make a commit by itself, and the others' commits wait for it as a batch.

    Returns when the batch is held. The number of the JVM's process is then in the folder's file
    `pid`.
    """
    jvm: Any = spark._jvm
    faults = compiled(spark, "Faults")
    jvm.io.interlock.coordinator.CommitPhases.observe(faults.phases())
    alone, amid = Path(folder) / "alone", Path(folder) / "amid"
    faults.arm("published", "hold", writers[0]["table"], str(alone))
    start(spark, writers[:1])
    eventually(alone.exists, PATIENCE_SECONDS)
    start(spark, writers[1:])
    eventually(lambda: threads_in(spark, "CommitQueue.await") == len(writers), PATIENCE_SECONDS)
    faults.arm("linked", "hold", writers[0]["table"], str(amid))
    alone.with_name("alone.go").touch()
    eventually(amid.exists, PATIENCE_SECONDS)
    pid = jvm.java.lang.ProcessHandle.current().pid()
    (Path(folder) / "pid").write_text(str(pid), encoding="utf-8")
