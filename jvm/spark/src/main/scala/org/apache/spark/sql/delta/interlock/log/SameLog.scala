package org.apache.spark.sql.delta.interlock.log

import java.io.FileNotFoundException

import scala.util.Try

import io.interlock.coordinator.SameFile
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.util.FileNames

/** Whether a log is still the one of a snapshot. While a checkpoint is written in the background, the
  * table may be dropped, and another one created at its path.
  */
private[log] object SameLog {

  /** Whether the snapshot's last commit is in the log. */
  def isOf(snapshot: Snapshot): Boolean =
    snapshot.logSegment.deltas.reverseIterator.find(_.getLen > 0).forall(last =>
      try SameFile(last, files(snapshot).getFileStatus(last.getPath))
      catch { case _: FileNotFoundException => false }
    )

  /** @throws FileNotFoundException
    *   if the log is not the one of the snapshot
    */
  def require(snapshot: Snapshot): Unit = if (!isOf(snapshot))
    throw new FileNotFoundException(
      s"${snapshot.deltaLog.logPath} is no longer the log of version ${snapshot.version}."
    )

  /** Deletes what came into a log after the table was dropped: a checkpoint, and folders that were
    * made anew.
    */
  def clear(snapshot: Snapshot, hasCheckpoint: Boolean): Unit = {
    val log = snapshot.deltaLog.logPath
    val fs = files(snapshot)
    def isOurs(file: Path) =
      FileNames.isCheckpointFile(file) && FileNames.checkpointVersion(file) == snapshot.version
    if (hasCheckpoint) fs.listStatus(log).map(_.getPath).filter(isOurs).foreach(fs.delete(_, false))
    Seq(log, log.getParent).foreach(folder => Try(fs.delete(folder, false))) // unless it has files
  }

  private def files(snapshot: Snapshot): FileSystem =
    snapshot.deltaLog.logPath.getFileSystem(snapshot.deltaLog.newDeltaHadoopConf())
}
