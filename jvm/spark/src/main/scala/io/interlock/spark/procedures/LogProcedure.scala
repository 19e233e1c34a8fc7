package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.{Row, SparkSession}

/** A procedure that reads the log of one table, and so can be a table function as well
  * ([[LogFunctions]]).
  *
  * @param options
  *   its parameters after the table
  */
abstract private[procedures] class LogProcedure(options: ProcedureParameter*)
    extends InterlockProcedure {
  final override val parameters: Array[ProcedureParameter] = (Parameters.Table +: options).toArray

  /** @param statement
    *   what asks, for errors
    */
  def read(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      arguments: Arguments
  ): Iterator[Row]

  final override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    read(session, NamedTable.load(session, arguments.table, name), name, arguments)
}
