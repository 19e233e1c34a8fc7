"""What the kill points have a driver process do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from integration.compiled import compiled

HOUR_MILLIS = 3_600_000


def prepare(spark: SparkSession, pid_file: str) -> None:
    """Put `Faults` where commits and files pass, and tell the number of the JVM's process."""
    jvm: Any = spark._jvm
    faults = compiled(spark, "Faults")
    spark.conf.set("fs.file.impl", "integration.Faults$Local")
    spark.conf.set("fs.file.impl.disable.cache", "true")
    spark._jsc.hadoopConfiguration().set("fs.s3a.impl", "integration.Faults$S3")
    spark._jsc.hadoopConfiguration().set("fs.hdfs.impl", "integration.Faults$Hdfs")
    jvm.io.interlock.coordinator.CommitPhases.observe(faults.phases())
    pid = jvm.java.lang.ProcessHandle.current().pid()
    Path(pid_file).write_text(str(pid), encoding="utf-8")


def arm(spark: SparkSession, point: str, action: str, table: str, marker: str) -> None:
    """Let the table's next work fail, or wait, at a point."""
    compiled(spark, "Faults").arm(point, action, table, marker)


def copy(spark: SparkSession, source: str, target: str) -> None:
    """Copy a folder, with its times, to a name that is free."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    shell = jvm.org.apache.hadoop.fs.FsShell(spark._jsc.hadoopConfiguration())
    for command in (["-mkdir", "-p", target.rpartition("/")[0]], ["-cp", "-pt", source, target]):
        arguments = gateway.new_array(jvm.String, len(command))
        for n, argument in enumerate(command):
            arguments[n] = argument
        assert shell.run(arguments) == 0, command


def shift_clock(spark: SparkSession, table: str, hours: int) -> None:
    """Give a table's log, before its first use, a clock that is some hours off."""
    jvm: Any = spark._jvm
    clock = jvm.org.apache.spark.util.ManualClock(int(time.time() * 1000) + hours * HOUR_MILLIS)
    path = jvm.org.apache.hadoop.fs.Path(table)
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path, clock)


def repair(spark: SparkSession, options: dict[str, str]) -> None:
    """Make the database agree with a table's log, as `interlock coordinator repair` does."""
    jvm: Any = spark._jvm
    said = jvm.io.interlock.spark.Maintenance.repairCoordinator(spark._jsparkSession, options)
    assert "condition" not in said, said
