package io.interlock.spark.history

import scala.collection.mutable

import io.interlock.rules.rebase.Segment
import io.interlock.spark.compaction.Lineage
import io.interlock.spark.predicates.PartitionScope
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.{AddFile, FileAction, Metadata, RemoveFile}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.log.CommitLog
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

  /** By [[schema]]. */
  def of(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String,
      partition: Map[String, Option[String]]
  ): Iterator[Row] = {
    val snapshot = NamedTable.snapshot(session, table, statement)
    val columns = snapshot.metadata.partitionSchema
    val scope = PartitionScope.predicate(session, table.name(), columns, partition)
    val sources = new Sources(snapshot)
    files(snapshot, scope.toSeq).map(file => row(snapshot.metadata, file, sources.of(file)))
  }

  private def files(snapshot: Snapshot, scope: Seq[Expression]): Iterator[AddFile] =
    snapshot.filesForScan(scope, keepNumRecords = true).files.iterator

  /** What files were compacted from, each commit read once. */
  final private class Sources(snapshot: Snapshot) {
    private val log = new CommitLog(snapshot)
    private val commits = mutable.Map.empty[Long, Map[String, Seq[Segment]]]

    /** None too where the log does not have the compaction's commit any more. */
    def of(file: AddFile): Option[Seq[String]] =
      file.defaultRowCommitVersion.filter(_ => Lineage.isCompacted(file))
        .flatMap(version => commits.getOrElseUpdate(version, lineage(version)).get(file.path))
        .map(_.sortBy(_.target).map(_.source).distinct)

    private def lineage(version: Long): Map[String, Seq[Segment]] = {
      val files = log.read(version).fold(Seq.empty[FileAction])(_.files)
      Lineage.of(files.collect { case remove: RemoveFile => remove })
    }
  }

  private def row(metadata: Metadata, file: AddFile, sources: Option[Seq[String]]): Row = Row(
    file.path,
    metadata.partitionSchema.map { field =>
      field.name -> file.partitionValues.getOrElse(DeltaColumnMapping.getPhysicalName(field), null)
    }.toMap,
    file.size,
    file.numLogicalRecords.getOrElse(null),
    file.numDeletedRecords,
    file.defaultRowCommitVersion.getOrElse(null),
    sources.orNull
  )
}
