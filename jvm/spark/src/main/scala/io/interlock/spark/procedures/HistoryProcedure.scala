package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** SHOW HISTORY as a procedure. */
private[procedures] object HistoryProcedure
    extends LogProcedure(Parameters.Partition, Parameters.Limit) {
  override val name: String = "history"
  override val outputType: StructType = NamedTable.historySchema
  override val description: String = "The versions of a table and what each did, newest first."

  override def read(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      arguments: Arguments
  ): Iterator[Row] = {
    val history = NamedTable.history(session, table, statement, arguments.partition)
    arguments.limited(history.records()).map(_.toRow)
  }
}
