package io.interlock.spark.procedures

import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The audit records of a table. */
private[procedures] object ConflictsProcedure extends LogProcedure(Parameters.Limit) {
  override val name: String = "conflicts"
  override val outputType: StructType = AuditedTable.recordSchema
  override val description: String =
    "The commits of a table that were rejected, or passed others, newest first."

  override def read(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      arguments: Arguments
  ): Iterator[Row] = arguments.limited(AuditedTable.conflicts(session, table, statement))
}
