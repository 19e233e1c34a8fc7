package org.apache.spark.sql.delta.interlock.ranges

import java.util.Objects

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}
import org.apache.spark.sql.delta.files.TahoeFileIndexWithSnapshotDescriptor
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.delta.{
  DefaultRowCommitVersion,
  DeltaLog,
  MaterializedRowCommitVersion,
  Snapshot
}

/** The files of a version that may have rows which changed after an earlier version.
  *
  * Skips files by partition and statistics, as every Delta scan does. It also skips files whose
  * default row commit version is at or below `after`, since no row of a file is above it. Delta's
  * optimizer rules do not touch an index that is not their own, so the skipping stays in effect.
  *
  * @param after
  *   the earlier version, or -1
  * @param endsNewest
  *   whether the version that is read was the newest when the query was analysed
  */
final class RangeFileIndex(
    override val spark: SparkSession,
    override val deltaLog: DeltaLog,
    override val path: Path,
    snapshot: Snapshot,
    after: Long,
    val endsNewest: Boolean
) extends TahoeFileIndexWithSnapshotDescriptor(spark, deltaLog, path, snapshot) {

  private lazy val all = recent.getOrElse(behind(Nil))

  override def matchingFiles(partition: Seq[Expression], data: Seq[Expression]): Seq[AddFile] = {
    val filters = (partition ++ data).filter(isOnData)
    if (filters.isEmpty) all else behind(filters)
  }

  /** Whether a filter selects by data: if only the range itself selects files, they are listed
    * once.
    */
  private def isOnData(filter: Expression): Boolean =
    filter != TrueLiteral && !filter.references.exists(column => rowVersion(column.name))

  private val rowVersion: Set[String] =
    MaterializedRowCommitVersion.getMaterializedColumnName(protocol, metadata).toSet +
      DefaultRowCommitVersion.METADATA_STRUCT_FIELD_NAME

  /** All files of a short range, from its commits alone: those that they added and did not remove
    * again. This needs no Spark job over the table's state. None if the range is long, or if one of
    * its commits is gone from the log.
    */
  private def recent: Option[Seq[AddFile]] =
    Option.when(version - after <= RangeFileIndex.CommitsRead)(after + 1 to version).flatMap {
      versions =>
        val log = new CommitLog(snapshot)
        val commits = versions.flatMap(log.read(_))
        Option.when(commits.size == versions.size) {
          val live = commits.foldLeft(Map.empty[String, AddFile]) { (files, commit) =>
            val removed = commit.files.collect { case remove: RemoveFile => remove.path }
            val added = commit.files.collect { case add: AddFile => add.path -> add }
            files -- removed ++ added
          }
          live.values.filter(mayHaveRows).toSeq
        }
    }

  private def behind(filters: Seq[Expression]): Seq[AddFile] =
    snapshot.filesForScan(filters).files.filter(mayHaveRows)

  private def mayHaveRows(file: AddFile): Boolean =
    file.defaultRowCommitVersion.forall(_ > after)

  override def inputFiles: Array[String] = all.map(f => absolutePath(f.path).toString).toArray

  override def refresh(): Unit = ()

  override def sizeInBytes: Long = all.map(_.size).sum

  /** Two ranges of one table differ by their ends. Spark compares plans by their indexes. */
  private def identity = (deltaLog.compositeId, path, version, after)

  override def equals(other: Any): Boolean = other match {
    case range: RangeFileIndex => range.identity == identity
    case _ => false
  }

  override def hashCode: Int = Objects.hashCode(identity)

  override def toString: String = s"Delta[versions=($after, $version], $path]"
}

private object RangeFileIndex {

  /** The maximum number of commits that are read for a range. */
  val CommitsRead = 10
}
