package io.interlock.spark.properties

import org.apache.spark.sql.catalyst.plans.logical.{CreateTableLike, LogicalPlan}

/** CREATE TABLE ... LIKE in a catalog that is not Hive's: the new table, the table that it is like,
  * its format and its properties.
  */
private[properties] object CopyOfDefinition {
  def unapply(
      like: CreateTableLike
  ): Some[(LogicalPlan, LogicalPlan, Option[String], Map[String, String])] =
    Some((like.name, like.source, like.provider, like.properties))
}
