package io.interlock.spark.properties

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** CREATE TABLE ... LIKE as Spark 4.2 has it for other catalogs than Hive's. Here, each of
  * these statements comes to `DeltaOnly` as a `CreateTableLikeCommand`.
  */
private[properties] object CopyOfDefinition {
  def unapply(
      plan: LogicalPlan
  ): Option[(LogicalPlan, LogicalPlan, Option[String], Map[String, String])] = None
}
