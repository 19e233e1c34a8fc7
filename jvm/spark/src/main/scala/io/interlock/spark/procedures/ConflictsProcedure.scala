package io.interlock.spark.procedures

import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The audit records of a table. */
private[procedures] object ConflictsProcedure extends InterlockProcedure {
  override val name: String = "conflicts"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, Parameters.Limit)
  override val outputType: StructType = AuditedTable.recordSchema
  override val description: String =
    "The commits of a table that were rejected, or passed others, newest first."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    arguments.limited(AuditedTable.conflicts(session, arguments.table, name))
}
