package io.interlock.spark.procedures

import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The way on where the log is not what this application left. */
private[procedures] object RepairProcedure extends InterlockProcedure {
  override val name: String = "repair"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table)
  override val outputType: StructType = LogRepair.schema
  override val description: String =
    "Takes a table's log as it is: commits of this application that are no longer there are given up."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    Iterator(LogRepair.run(session, arguments.table, name))
}
