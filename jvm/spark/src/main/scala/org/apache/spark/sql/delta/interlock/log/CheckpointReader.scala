package org.apache.spark.sql.delta.interlock.log

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.encoderFor
import org.apache.spark.sql.delta.actions.{Action, SingleAction}
import org.apache.spark.sql.delta.implicits._
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.types.StructType

/** Reads a checkpoint that is one Parquet file, without a Spark job. */
private[log] object CheckpointReader {
  private val encoder = encoderFor(singleActionEncoder)

  // Deserializers are not thread-safe.
  private lazy val toAction = encoder.resolveAndBind().createDeserializer()

  /** The actions; none if there are more than `most`, or if Delta has to read them: of version 2, or
    * with statistics in columns alone.
    */
  def read(
      session: SparkSession,
      log: DeltaLog,
      file: FileStatus,
      most: Int
  ): Option[Vector[Action]] = {
    val (schema, count) = Snapshot.getParquetFileSchemaAndRowCount(session, log, file)
    Option.when(count <= most && hasStatistics(schema) && !schema.fieldNames.contains("sidecar")) {
      val all = rows(session, log, file)
      toAction.synchronized(all.map(toAction(_): SingleAction)).map(_.unwrap)
    }
  }

  private def hasStatistics(schema: StructType) =
    schema.find(_.name == "add").map(_.dataType).exists {
      case add: StructType => add.fieldNames.contains("stats")
      case _ => false
    }

  private def rows(session: SparkSession, log: DeltaLog, file: FileStatus): Vector[InternalRow] = {
    val read = new ParquetFileFormat().buildReaderWithPartitionValues(
      session,
      dataSchema = encoder.schema,
      partitionSchema = new StructType(),
      requiredSchema = encoder.schema,
      filters = Nil,
      options = Map(FileFormat.OPTION_RETURNING_BATCH -> "false"),
      log.newDeltaHadoopConf()
    )
    val whole = PartitionedFile(
      InternalRow.empty,
      SparkPath.fromFileStatus(file),
      start = 0,
      file.getLen,
      fileSize = file.getLen
    )
    read(whole).map(_.copy()).toVector
  }
}
