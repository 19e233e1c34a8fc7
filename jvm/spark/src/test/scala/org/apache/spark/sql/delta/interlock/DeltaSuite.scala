package org.apache.spark.sql.delta.interlock

import java.nio.file.Files

import scala.concurrent.duration._

import munit.FunSuite
import org.apache.spark.sql.SparkSession

/** Tests that need Delta's classes and a session, the same for all; Interlock is not loaded in it. */
abstract class DeltaSuite extends FunSuite {
  protected lazy val spark: SparkSession = DeltaSuite.session

  // The first test starts Spark.
  override val munitTimeout: Duration = 5.minutes
}

private object DeltaSuite {
  private lazy val session = SparkSession.builder().master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.warehouse.dir", Files.createTempDirectory("warehouse").toString)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config(
      "spark.sql.catalog.spark_catalog",
      "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    .getOrCreate()
}
