package org.apache.spark.sql.delta.interlock

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Delta tables by name, for statements, functions and procedures that read a table's log. */
private[interlock] object NamedTable {

  /** @param statement
    *   what asks, for errors
    * @param partition
    *   values of partition columns; empty for the whole table
    */
  def history(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      partition: Map[String, Option[String]]
  ): VersionHistory = {
    val now = snapshot(session, table, statement)
    val columns = now.metadata.partitionSchema
    val scope = PartitionScope.predicate(session, table.name(), columns, partition)
    new VersionHistory(now, scope.map(new PartitionPredicates(session, columns).of))
  }

  /** The whole table as it is now.
    *
    * @throws AnalysisException
    *   as SELECT raises it, where there is no table
    */
  def snapshot(session: SparkSession, table: DeltaTableV2, statement: String): Snapshot = {
    PartitionScope.refusePath(session, table, statement)
    val found = table.update()
    if (found.version < 0) table.toBaseRelation
    found
  }
}
