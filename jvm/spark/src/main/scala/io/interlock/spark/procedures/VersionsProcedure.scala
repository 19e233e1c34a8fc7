package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The two kinds of versions, without what they did. */
private[procedures] object VersionsProcedure extends InterlockProcedure {
  private val columns = Seq("version", "time_version", "timestamp", "operation")

  override val name: String = "versions"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, Parameters.Limit)
  override val outputType: StructType = StructType(columns.map(NamedTable.historySchema(_)))
  override val description: String =
    "The ID versions and time versions of a table, for VERSION AS OF and TIMESTAMP AS OF."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val fields = columns.map(NamedTable.historySchema.fieldIndex)
    arguments.limited(NamedTable.history(session, arguments.table, name, Map.empty))
      .map(record => Row.fromSeq(fields.map(record.get)))
  }
}
