package org.apache.spark.sql.delta.interlock.transaction

import java.io.FileNotFoundException

import scala.util.Try

import io.interlock.coordinator.CommitLines
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.errors.GoneTable
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.interlock.log.{ChecksummedSnapshot, CommitLog}
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, LogSegment, Snapshot}

/** The table that a transaction has read, asked whether its log is still the same: it may be dropped,
  * created anew, cleaned up, or put back from a backup while a statement runs.
  */
final private[transaction] class ReadTable(
    val log: DeltaLog,
    val catalogTable: Option[CatalogTable],
    val snapshot: Snapshot
) {
  private val timesForgotten = Coordinators.timesForgotten(log)
  private def fs: FileSystem = log.logPath.getFileSystem(log.newDeltaHadoopConf())

  /** How messages name it. */
  val name: String =
    catalogTable.fold(s"delta.`${log.dataPath.toUri.getPath}`")(_.identifier.unquotedString)

  /** Whether there was none: the transaction makes it. */
  def isNew: Boolean = snapshot.version < 0

  def properties: Map[String, String] = snapshot.metadata.configuration

  /** Whether the log is still that of this table. Asked by other threads too.
    *
    * @param segment
    *   the log as far as the transaction knows it; its last commit file tells the table, or else the
    *   table's id and the transaction that made the version that was read, as far as it is known
    */
  def isThere(segment: LogSegment): Boolean = isNew ||
    timesForgotten == Coordinators.timesForgotten(log) &&
    (segment.deltas.reverseIterator.find(_.getLen > 0).exists(isAsBefore) ||
      isIdSame && Try(isVersionSame).getOrElse(true))

  private def isAsBefore(file: FileStatus): Boolean =
    Try(status(file).getModificationTime == file.getModificationTime).getOrElse(false)

  private def isIdSame: Boolean =
    Try(log.update(catalogTableOpt = catalogTable).metadata.id).toOption
      .contains(snapshot.metadata.id)

  /** True too where the log has the version no more. */
  private def isVersionSame: Boolean = {
    val made = Option(snapshot).collect { case known: ChecksummedSnapshot => known }
      .flatMap(_.checksumOpt).flatMap(_.txnId)
    val now = made.flatMap(_ => new CommitLog(snapshot).info(snapshot.version)).flatMap(_.txnId)
    now.forall(made.contains)
  }

  /** Whether a commit file is there as it was: same size, same time. */
  def has(file: FileStatus): Boolean = Try(status(file)).toOption
    .exists(now => now.getModificationTime == file.getModificationTime && now.getLen == file.getLen)

  /** The file as it is now. */
  def status(file: FileStatus): FileStatus = fs.getFileStatus(file.getPath)

  /** Whether a file of the log is there, whatever it holds. */
  def has(file: Path): Boolean = fs.exists(file)

  /** The commit behind the version that was read. */
  def next: FileStatus = fs.getFileStatus(commitFile(snapshot.version + 1))

  /** Whether the log has later versions than the one that was read, but not that one. */
  def isCleanedUp: Boolean = !isNew && Try {
    val from = FileNames.listingPrefix(log.logPath, snapshot.version)
    log.store.listFrom(from, log.newDeltaHadoopConf()).map(_.getPath)
      .find(FileNames.isDeltaFile).exists(FileNames.deltaVersion(_) > snapshot.version)
  }.getOrElse(false)

  /** Whether the storage shows what is in the log, if there is one. */
  def canSeeLog: Boolean = Try(fs.listStatus(log.logPath))
    .failed.toOption.forall(_.isInstanceOf[FileNotFoundException])

  /** Whether a version that is not there will not come later. */
  def isLocal: Boolean = Try(fs.getScheme == "file").getOrElse(false)

  /** Who has made a version: the id of the transaction, "" where its commit tells none; None where the
    * version is not there. Asked in an interrupted thread too.
    */
  def committerOf(version: Long): Try[Option[String]] = {
    val interrupted = Thread.interrupted()
    try Try(firstLine(version).map(CommitLines.txnIdOf(_).getOrElse("")))
    finally if (interrupted) Thread.currentThread().interrupt()
  }

  private def firstLine(version: Long): Option[String] =
    try {
      val lines = log.store.readAsIterator(commitFile(version), log.newDeltaHadoopConf())
      try lines.nextOption().orElse(Some(""))
      finally lines.close()
    } catch { case _: FileNotFoundException => None }

  private def commitFile(version: Long): Path = FileNames.unsafeDeltaFile(log.logPath, version)

  /** A clause for a message, where it is no longer there. */
  def whatBecame(spark: SparkSession): String =
    GoneTable.whatBecame(spark, log, snapshot, catalogTable)
}
