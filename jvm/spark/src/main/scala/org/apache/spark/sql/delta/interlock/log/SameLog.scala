package org.apache.spark.sql.delta.interlock.log

import java.io.FileNotFoundException

import scala.util.Try

import io.interlock.coordinator.{QuickLocalFileSystem, SameFile}
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.util.FileNames

/** Whether a log is still the one of a snapshot. While a checkpoint is written in the background, the
  * table may be dropped, and another one created at its path.
  */
private[interlock] object SameLog {

  /** Whether the snapshot's last commit is in the log. On a storage that tells another time of a file
    * than its listings do, the transaction is compared, or else the file's length.
    */
  def isOf(snapshot: Snapshot): Boolean =
    snapshot.logSegment.deltas.reverseIterator.find(_.getLen > 0).forall(last =>
      try {
        val now = files(snapshot).getFileStatus(last.getPath)
        def isAlike = !QuickLocalFileSystem.isLocal(last.getPath) && last.getLen == now.getLen
        SameFile(last, now) || isMadeByKnown(snapshot).getOrElse(isAlike)
      } catch { case _: FileNotFoundException => false }
    )

  /** Whether the transaction that has made the version is the one that the snapshot knows by a proved
    * checksum; none if either is not known.
    */
  def isVersionSame(snapshot: Snapshot): Option[Boolean] =
    Option(snapshot).collect { case known: ChecksummedSnapshot => known }
      .flatMap(isMadeByKnown)

  private def isMadeByKnown(snapshot: Snapshot): Option[Boolean] =
    for {
      made <- snapshot.checksumOpt.flatMap(_.txnId)
      now <- new CommitLog(snapshot).info(snapshot.version).flatMap(_.txnId)
    } yield now == made

  /** @throws FileNotFoundException
    *   if the log is not the one of the snapshot
    */
  def require(snapshot: Snapshot): Unit = if (!isOf(snapshot))
    throw new FileNotFoundException(
      s"${snapshot.deltaLog.logPath} is no longer the log of version ${snapshot.version}."
    )

  /** Deletes what came into a log after the table was dropped: a checkpoint, and folders that were
    * made anew.
    *
    * @param hasCheckpoint
    *   whether the checkpoint is complete; parts of one are left to a table that is there now
    * @throws java.io.IOException
    *   if the log cannot be listed; nothing is deleted
    */
  def clear(snapshot: Snapshot, hasCheckpoint: Boolean): Unit = {
    val log = snapshot.deltaLog.logPath
    val fs = files(snapshot)
    def isOurs(file: Path) =
      FileNames.isCheckpointFile(file) && FileNames.checkpointVersion(file) == snapshot.version
    val found =
      try fs.listStatus(log).map(_.getPath).toSeq
      catch { case _: FileNotFoundException => Nil }
    val isDropped = !found.exists(FileNames.isDeltaFile)
    if (hasCheckpoint || isDropped) found.filter(isOurs).foreach(fs.delete(_, false))
    if (isDropped) Try(fs.delete(FileNames.sidecarDirPath(log), true)): Unit
    Seq(log, log.getParent).foreach(folder => Try(fs.delete(folder, false))) // unless it has files
  }

  private def files(snapshot: Snapshot): FileSystem =
    snapshot.deltaLog.logPath.getFileSystem(snapshot.deltaLog.newDeltaHadoopConf())
}
