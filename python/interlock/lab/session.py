"""Settings that suit tables of three rows on a laptop."""

from __future__ import annotations

SMALL_SESSION = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    # Two cores compile less and collect in one thread; without the tier above, the code cache
    # would be small, and full after a minute.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
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
