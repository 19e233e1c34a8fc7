package org.apache.spark.sql.delta.interlock.table

import java.io.FileNotFoundException

import scala.util.Try

import io.interlock.coordinator.{CommitLines, Interrupt, QuickLocalFileSystem, SameFile}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.actions.SetTransaction
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient
import org.apache.spark.sql.delta.interlock.log.{LogListing, SameLog}
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, LogSegment, Snapshot}

/** The table that a transaction has read, with checks whether its log is still the same: while a
  * statement runs, the table may be dropped, created again, cleaned up or put back from a backup.
  */
final private[interlock] class ReadTable(
    val log: DeltaLog,
    val catalogTable: Option[CatalogTable],
    val snapshot: Snapshot
) {

  /** Made once for a transaction, since it is a copy of some thousand settings. */
  lazy val conf: Configuration = log.newDeltaHadoopConf()
  private def fs: FileSystem = log.logPath.getFileSystem(conf)

  /** The table's name in messages. */
  val name: String = catalogTable.fold(s"delta.`$location`")(_.identifier.unquotedString)

  private def location = if (isLocal) log.dataPath.toUri.getPath else log.dataPath.toString

  /** Whether the table did not exist yet, so that the transaction creates it. */
  def isNew: Boolean = snapshot.version < 0

  def properties: Map[String, String] = snapshot.metadata.configuration

  /** Whether the log still belongs to this table. Other threads ask this too.
    *
    * It does if the file of the version that was read is unchanged, or if the transaction that made
    * this version is known and still the same. If it is not known, the table's id is compared, for
    * which the log is listed.
    */
  def isThere: Boolean = isNew ||
    snapshot.logSegment.deltas.lastOption.exists(has) ||
    Try(SameLog.isVersionSame(snapshot)).toOption.flatten.getOrElse(isIdSame)

  /** @throws FileNotFoundException
    *   if the log belongs to another table now
    */
  def refuseIfGone(): Unit = if (!isThere)
    throw whyUnseen.getOrElse(
      new FileNotFoundException(s"${log.logPath} is no longer the log of $name.")
    )

  private def isIdSame: Boolean =
    Try(log.update(catalogTableOpt = catalogTable).metadata.id).toOption
      .contains(snapshot.metadata.id)

  /** Whether the table has these batches now, and there are any. */
  def hasNow(batches: Seq[SetTransaction]): Boolean = batches.nonEmpty && isThere && {
    val done = log.update(catalogTableOpt = catalogTable).transactions
    batches.forall(batch => done.get(batch.appId).exists(_ >= batch.version))
  }

  /** The log up to the last of some commits that follow the version that was read. */
  def segment(behind: Seq[FileStatus]): LogSegment = {
    val read = snapshot.logSegment.copy(checkpointProvider = snapshot.checkpointProvider)
    behind.lastOption.fold(read)(last =>
      read.copy(
        version = FileNames.deltaVersion(last),
        deltas = read.deltas ++ behind,
        lastCommitFileModificationTimestamp = last.getModificationTime
      )
    )
  }

  /** The commits in the log after some that follow the version that was read. */
  def listedSince(
      behind: Seq[FileStatus],
      client: TableCommitCoordinatorClient
  ): Seq[FileStatus] =
    LogListing.complete(log.getUpdatedLogSegment(segment(behind), Some(client), catalogTable)._2)

  /** Whether a commit file has not been replaced. */
  def has(file: FileStatus): Boolean = Try(status(file)).toOption.exists(SameFile(file, _))

  /** The current status of the file. */
  def status(file: FileStatus): FileStatus = fs.getFileStatus(file.getPath)

  def commit(version: Long): FileStatus = fs.getFileStatus(file(version))

  /** Whether the log has later versions than the one that was read, but not that one. */
  def isCleanedUp: Boolean = !isNew && Try {
    val from = FileNames.listingPrefix(log.logPath, snapshot.version)
    log.store.listFrom(from, conf).map(_.getPath)
      .find(FileNames.isDeltaFile).exists(FileNames.deltaVersion(_) > snapshot.version)
  }.getOrElse(false)

  /** Why the log's folder cannot be listed; None if it can, or if there is none. */
  def whyUnseen: Option[Throwable] = Try(fs.listStatus(log.logPath)).failed.toOption
    .filterNot(_.isInstanceOf[FileNotFoundException])

  /** Whether the table is on a local disk, where a version that is missing does not appear later.
    */
  def isLocal: Boolean = QuickLocalFileSystem.isLocal(log.logPath)

  /** The id of the transaction that made a version, "" if its commit has none; None if the version
    * does not exist. Also called in an interrupted thread.
    */
  def committerOf(version: Long): Try[Option[String]] = Interrupt.setAside(
    Try(firstLine(version).map(CommitLines.txnIdOf(_).getOrElse("")))
  )

  private def firstLine(version: Long): Option[String] =
    try {
      val lines = log.store.readAsIterator(file(version), conf)
      try lines.nextOption().orElse(Some(""))
      finally lines.close()
    } catch { case _: FileNotFoundException => None }

  def file(version: Long): Path = FileNames.unsafeDeltaFile(log.logPath, version)
}
