package org.apache.spark.sql.delta.interlock.log

import java.io.{FileNotFoundException, IOException}

import scala.util.control.NonFatal

import com.google.common.base.Throwables
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
  import DerivedFiles._

  private val log = snapshot.deltaLog
  private val conf = log.newDeltaHadoopConf()
  private val commits = new CommitLog(snapshot)
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
    *   cannot be read without these files, or one is being written; then they are all there
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
    // One that is on its way would come after the others are deleted.
    if (!BackgroundCheckpoints.awaitIdle(log.logPath, CheckpointMillis))
      throw refused(replaced, "a checkpoint is being written")
    val states = since(replaced)(file =>
      FileNames.isCheckpointFile(file) || FileNames.isCompactedDeltaFile(file)
    )
    if (states.nonEmpty) {
      requireReadable(replaced)
      (log.LAST_CHECKPOINT +: states).foreach(delete)
      BackgroundCheckpoints.forget(log.logPath)
    }
    deleteChecksums(replaced.min(snapshot.checkpointProvider.version))
  }

  private def deleteChecksums(first: Long): Unit =
    since(first)(FileNames.isChecksumFile).foreach(delete)

  private def since(version: Long)(isWanted: Path => Boolean): Seq[Path] =
    files.filter(file => isWanted(file) && FileNames.getFileVersion(file) >= version)

  /** Requires that the state before a version and all commits from it on can be read. */
  private def requireReadable(version: Long): Unit =
    try {
      if (version == 0) requireBeginning()
      else log.getSnapshotAt(version - 1).stateDF.count(): Unit
      (version to snapshot.version).find(commits.read(_).forall(isEmpty)).foreach(missing =>
        throw new FileNotFoundException(s"no commit $missing in the log")
      )
    } catch {
      case NonFatal(unreadable) =>
        throw refused(version, s"without it, ${Throwables.getRootCause(unreadable)}")
    }

  private def requireBeginning(): Unit =
    if (!commits.definition(0).exists(first => first.protocol.nonEmpty && first.metadata.nonEmpty))
      throw new FileNotFoundException("no beginning of the table in the log")

  private def isEmpty(commit: Commit) =
    commit.info.isEmpty && commit.metadata.isEmpty && commit.files.isEmpty

  private def refused(version: Long, reason: String) =
    InterlockException.repairRefused(table, version, reason.linesIterator.next())

  private def delete(file: Path): Unit = {
    val fs = file.getFileSystem(conf)
    if (!fs.delete(file, false) && fs.exists(file)) throw new IOException(s"$file was not deleted.")
  }
}

private object DerivedFiles {
  private val CheckpointMillis = 60000L
}
