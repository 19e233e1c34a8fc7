package io.interlock.spark.procedures

import io.interlock.spark.history.LiveFiles
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The data files of a table as it is now. */
private[procedures] object FilesProcedure extends InterlockProcedure {
  override val name: String = "files"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, Parameters.Partition)
  override val outputType: StructType = LiveFiles.schema
  override val description: String =
    "The live data files of a table, their rows, and the files that each was compacted from."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    LiveFiles.of(session, arguments.table, name, arguments.partition)
}
