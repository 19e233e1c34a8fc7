package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** SHOW HISTORY as a procedure. */
private[procedures] object HistoryProcedure extends InterlockProcedure {
  override val name: String = "history"
  override val parameters: Array[ProcedureParameter] =
    Array(Parameters.Table, Parameters.Partition, Parameters.Limit)
  override val outputType: StructType = NamedTable.historySchema
  override val description: String = "The versions of a table and what each did, newest first."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    arguments.limited(NamedTable.history(session, arguments.table, name, arguments.partition))
}
