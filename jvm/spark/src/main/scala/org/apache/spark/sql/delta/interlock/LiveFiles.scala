package org.apache.spark.sql.delta.interlock

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.apache.spark.sql.delta.{DeltaColumnMapping, Snapshot}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}

/** The data files of a table, as its log has them. */
object LiveFiles {

  /** `path` and `compacted_from` as the log writes them: relative to the table's folder, and encoded
    * as URLs are.
    */
  val schema: StructType = new StructType()
    .add("path", StringType, nullable = false)
    .add("partition", MapType(StringType, StringType), nullable = false)
    .add("size", LongType, nullable = false)
    .add("rows", LongType)
    .add("dead_rows", LongType, nullable = false)
    .add("row_commit_version", LongType)
    .add("compacted_from", ArrayType(StringType, containsNull = false))

  /** By [[schema]].
    *
    * @param partition
    *   values of partition columns; empty for the whole table
    */
  def of(
      session: SparkSession,
      name: String,
      statement: String,
      partition: Map[String, Option[String]]
  ): Iterator[Row] = {
    val table = NamedTable.load(session, name, statement)
    val snapshot = NamedTable.snapshot(session, table, statement)
    val columns = snapshot.metadata.partitionSchema
    val scope = PartitionScope.predicate(session, table.name(), columns, partition)
    files(snapshot, scope.toSeq).map(row(snapshot.metadata, _))
  }

  private def files(snapshot: Snapshot, scope: Seq[Expression]): Iterator[AddFile] =
    snapshot.filesForScan(scope, keepNumRecords = true).files.iterator

  private def row(metadata: Metadata, file: AddFile): Row = Row(
    file.path,
    metadata.partitionSchema.map { field =>
      field.name -> file.partitionValues.getOrElse(DeltaColumnMapping.getPhysicalName(field), null)
    }.toMap,
    file.size,
    file.numLogicalRecords.getOrElse(null),
    file.numDeletedRecords,
    file.defaultRowCommitVersion.getOrElse(null),
    file
      .getTag(Lineage.Tag)
      .flatMap(text => Try(Lineage.decode(text)).toOption)
      .map(_.map(_.source).distinct)
      .orNull
  )
}
