package io.interlock.spark.procedures

import io.interlock.spark.history.LiveFiles
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The data files of a table as it is now. */
private[procedures] object FilesProcedure extends LogProcedure(Parameters.Partition) {
  override val name: String = "files"
  override val outputType: StructType = LiveFiles.schema
  override val description: String =
    "The live data files of a table, their rows, and the files that each was compacted from."

  override def read(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      arguments: Arguments
  ): Iterator[Row] = LiveFiles.of(session, table, statement, arguments.partition)
}
