"""Delta's snapshots of a table, as transactions get them and as they are read anew."""

from __future__ import annotations

import shutil
from itertools import count
from typing import Any

from pyspark.sql import SparkSession

from tests.kit.support import Table, latest_version, log_of

# What Delta logs of each snapshot that it has looked for.
_LOOKED = "Updated snapshot to"
_NUMBERS = count()


def delta_log(spark: SparkSession, table: Table) -> Any:
    """Return Delta's object for the table's log, the same until all are forgotten."""
    return log_at(spark, str(table.path))


def log_at(spark: SparkSession, location: str) -> Any:
    """Return the same for a table's folder or URL."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, location)


def log_apart(spark: SparkSession, table: Table) -> Any:
    """Return another object for the log, which has just read it; nothing is forgotten for it."""
    jvm: Any = spark._jvm
    options = jvm.PythonUtils.toScalaMap({"fs.interlock.apart": str(next(_NUMBERS))})
    path = jvm.org.apache.hadoop.fs.Path(str(table.path))
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path, options)


def queue_of(spark: SparkSession, table: Table) -> Any:
    """Return the queue of the table's commits in this process."""
    jvm: Any = spark._jvm
    log = delta_log(spark, table)
    metadata = log.unsafeVolatileSnapshot().metadata()
    return jvm.io.interlock.spark.commits.Coordinators.queue(
        spark._jsparkSession, log, metadata.configuration(), metadata.id()
    ).get()


def forget_logs(spark: SparkSession) -> None:
    """Have the next statements use other objects for the log, as another process does."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def delete_table(spark: SparkSession, table: Table) -> None:
    """Delete a table that is done with, and the logs that Delta would keep for an hour.

    The plans of one snapshot take megabytes, and a soak has thousands of tables.
    """
    # Away first: the note of a transaction that was given up may be renewed meanwhile.
    shutil.rmtree(table.path.rename(table.path.with_name(f"{table.path.name}.gone")))
    forget_logs(spark)


def begin(spark: SparkSession, log: Any) -> tuple[Any, bool]:
    """Start a transaction; return its snapshot, and whether Delta looked for the newest one."""
    with log_of(spark, "org.apache.spark.sql.delta.DeltaLog", level="INFO") as written:
        transaction = log.startTransaction()
    return transaction.snapshot(), _LOOKED in str(written)


def check_next_snapshot(spark: SparkSession, table: Table) -> None:
    """Check that a transaction now starts from what Delta reads anew from the log."""
    found = told(delta_log(spark, table).startTransaction().snapshot())
    anew = told(log_apart(spark, table).unsafeVolatileSnapshot())
    assert found == anew, f"{found} is in memory, {anew} in the log"
    assert found["version"] == latest_version(table)


def check_anew(spark: SparkSession, table: Table, snapshot: Any) -> None:
    """Check that a snapshot is what Delta reads anew from the log."""
    jvm: Any = spark._jvm
    nothing = jvm.scala.Option.empty()
    found = told(snapshot)
    forget_logs(spark)
    assert found == told(delta_log(spark, table).update(False, nothing, nothing))
    assert found["version"] == latest_version(table)


def told(snapshot: Any) -> dict[str, object]:
    """Return all that a snapshot tells of the table."""
    return {
        "version": snapshot.version(),
        "metadata": snapshot.metadata().json(),
        "protocol": snapshot.protocol().json(),
        "files": sorted(snapshot.allFiles().toJSON().collectAsList()),
        "count": (snapshot.numOfFiles(), snapshot.sizeInBytes()),
        "domains": sorted(snapshot.domainMetadata().mkString("\n").splitlines()),
        "transactions": sorted(snapshot.setTransactions().mkString("\n").splitlines()),
        "time": snapshot.timestamp(),
    }
