package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The two kinds of versions, without what they did. */
private[procedures] object VersionsProcedure extends LogProcedure(Parameters.Limit) {
  private val columns = Seq("version", "time_version", "timestamp", "operation")

  override val name: String = "versions"
  override val outputType: StructType = StructType(columns.map(NamedTable.historySchema(_)))
  override val description: String =
    "The ID versions and time versions of a table, for VERSION AS OF and TIMESTAMP AS OF."

  override def read(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      arguments: Arguments
  ): Iterator[Row] = {
    val fields = columns.map(NamedTable.historySchema.fieldIndex)
    arguments.limited(NamedTable.history(session, table, statement, Map.empty).records())
      .map(_.toRow).map(row => Row.fromSeq(fields.map(row.get)))
  }
}
