package io.interlock.spark.procedures

import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{DoubleType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** The way on where the log is not what this application left. */
private[procedures] object RepairProcedure extends InterlockProcedure {
  private val replaced = ProcedureParameter
    .in("replaced", DoubleType)
    .comment("the version of a commit that another one has replaced, as the error says")
    .defaultValue("NULL")
    .build()

  override val name: String = "repair"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, replaced)
  override val outputType: StructType = LogRepair.schema
  override val description: String =
    "Takes a table's log as it is: commits of this application that are no longer there are given up."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    Iterator(LogRepair.run(
      session,
      arguments.table,
      arguments.whole(replaced.name, "the replaced version"),
      name
    ))
}
