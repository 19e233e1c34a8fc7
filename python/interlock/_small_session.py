"""Settings that suit tables of three rows on a laptop."""

from __future__ import annotations

import os

# Two cores collect in one thread; a JVM does not start with a second collector beside one that the
# environment chooses.
_COLLECTOR = "" if "GC" in os.environ.get("JAVA_TOOL_OPTIONS", "") else " -XX:+UseSerialGC"
JVM_OPTIONS = f"-XX:ReservedCodeCacheSize=240m{_COLLECTOR}"
# For a JVM of minutes: two cores compile less. By itself its code cache would be small, and full.
SHORT_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 {JVM_OPTIONS}"

SMALL_SESSION = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_JVM_OPTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",  # VALUES makes one file, as in the documents
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM lists with it
    # Three rows are read before code for them would be compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
}
