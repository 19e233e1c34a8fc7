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

/** The files of a version in which rows may be that changed behind an earlier one.
  *
  * Skips by partition and statistics as every Delta scan does, and the files whose default row
  * commit version, which no row of a file is above, is not behind `after`. Delta's rules leave an
  * index alone that is not their own, so the skipping holds up to the scan.
  *
  * @param snapshot
  *   the version that is read
  * @param after
  *   the earlier version, or -1
  */
final class RangeFileIndex(
    override val spark: SparkSession,
    override val deltaLog: DeltaLog,
    override val path: Path,
    snapshot: Snapshot,
    after: Long
) extends TahoeFileIndexWithSnapshotDescriptor(spark, deltaLog, path, snapshot) {

  private lazy val all = recent.getOrElse(behind(Nil))

  override def matchingFiles(partition: Seq[Expression], data: Seq[Expression]): Seq[AddFile] = {
    val filters = (partition ++ data).filter(isOnData)
    if (filters.isEmpty) all else behind(filters)
  }

  /** The files are listed once where nothing but the range itself chooses among them. */
  private def isOnData(filter: Expression): Boolean =
    filter != TrueLiteral && !filter.references.exists(column => rowVersion(column.name))

  private val rowVersion: Set[String] =
    MaterializedRowCommitVersion.getMaterializedColumnName(protocol, metadata).toSet +
      DefaultRowCommitVersion.METADATA_STRUCT_FIELD_NAME

  /** The same as all files without a filter, of a short range: what its own commits added and did not
    * remove again, so that no Spark job goes through the state of the table. None where the range is
    * long, or a commit is gone from the log.
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

  /** Two ranges are told apart by their ends: plans are compared by their indexes. */
  private def identity = (deltaLog.compositeId, path, version, after)

  override def equals(other: Any): Boolean = other match {
    case range: RangeFileIndex => range.identity == identity
    case _ => false
  }

  override def hashCode: Int = Objects.hashCode(identity)

  override def toString: String = s"Delta[versions=($after, $version], $path]"
}

private object RangeFileIndex {

  /** Up to how many commits are read for a range. */
  val CommitsRead = 10
}
