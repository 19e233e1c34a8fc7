package org.apache.spark.sql.delta.interlock.log

import java.io.IOException

import scala.util.control.NonFatal

import io.interlock.spark.errors.InterlockException
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.util.FileNames

/** The files of a log that were derived from its commits.
  *
  * @param snapshot
  *   the log's last version
  * @param table
  *   the table's name in errors
  */
final class DerivedFiles(snapshot: Snapshot, table: String) {
  private val log = snapshot.deltaLog
  private val conf = log.newDeltaHadoopConf()
  private lazy val files =
    log.store.listFrom(FileNames.listingPrefix(log.logPath, 0), conf).map(_.getPath).toVector

  /** Deletes the checksums since the last checkpoint.
    *
    * @throws java.io.IOException
    *   if a file cannot be deleted
    */
  def deleteChecksums(): Unit = deleteChecksums(snapshot.checkpointProvider.version)

  /** Deletes what may have been derived from the commit that was at a version before another one took
    * its place: checkpoints, compacted commits and checksums.
    *
    * @throws InterlockException
    *   INTERLOCK_INVALID_ARGUMENT if the table has no such version; INTERLOCK_REPAIR_REFUSED if it
    *   cannot be read without these files; then they are all there
    * @throws java.io.IOException
    *   if a file cannot be deleted
    */
  def deleteSince(replaced: Long): Unit = {
    if (replaced > snapshot.version)
      throw InterlockException.invalidArgument(
        "the replaced version",
        replaced.toString,
        s"a version of the table, 0 to ${snapshot.version}"
      )
    val states = since(replaced)(file =>
      FileNames.isCheckpointFile(file) || FileNames.isCompactedDeltaFile(file)
    )
    if (states.nonEmpty) {
      requireReadable(replaced)
      (log.LAST_CHECKPOINT +: states).foreach(delete)
    }
    deleteChecksums(replaced.min(snapshot.checkpointProvider.version))
  }

  private def deleteChecksums(first: Long): Unit =
    since(first)(FileNames.isChecksumFile).foreach(delete)

  private def since(version: Long)(isWanted: Path => Boolean): Seq[Path] =
    files.filter(file => isWanted(file) && FileNames.getFileVersion(file) >= version)

  /** Requires all commits from a version on, and the state before it. */
  private def requireReadable(version: Long): Unit = {
    val commits = files.filter(FileNames.isDeltaFile).map(FileNames.getFileVersion).toSet
    (version to snapshot.version).find(!commits(_)).foreach(missing =>
      throw refused(version, s"the log has no commit of version $missing")
    )
    if (version > 0)
      try log.getSnapshotAt(version - 1).stateDF.count(): Unit
      catch { case NonFatal(unreadable) => throw refused(version, unreadable.getMessage) }
  }

  private def refused(version: Long, reason: String) =
    InterlockException.repairRefused(table, version, reason)

  private def delete(file: Path): Unit = {
    val fs = file.getFileSystem(conf)
    if (!fs.delete(file, false) && fs.exists(file)) throw new IOException(s"$file was not deleted.")
  }
}
