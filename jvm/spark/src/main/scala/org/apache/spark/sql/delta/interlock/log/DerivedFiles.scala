package org.apache.spark.sql.delta.interlock.log

import java.io.{FileNotFoundException, IOException}

import scala.util.control.NonFatal

import com.google.common.base.Throwables
import io.interlock.spark.errors.InterlockException
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{CheckpointProtectionTableFeature, Snapshot}

/** The files of a log that were derived from its commits.
  *
  * @param snapshot
  *   the log's last version
  * @param catalogTable
  *   the table in the catalog, if it is there
  * @param table
  *   the table's name in errors
  */
final class DerivedFiles(snapshot: Snapshot, catalogTable: Option[CatalogTable], table: String) {
  import DerivedFiles._

  private val log = snapshot.deltaLog
  private val conf = log.newDeltaHadoopConf()
  private val commits = new CommitLog(snapshot)
  private lazy val files =
    log.store.listFrom(FileNames.listingPrefix(log.logPath, 0), conf).map(_.getPath).toVector

  /** Deletes the checksums since the last checkpoint.
    *
    * @throws InterlockException
    *   INTERLOCK_REPAIR_INCOMPLETE if a file cannot be deleted
    */
  def deleteChecksums(): Unit = deleteChecksums(snapshot.checkpointProvider.version)

  /** Deletes what may have been derived from the commit that was at a version before another one took
    * its place: checkpoints, compacted commits and checksums.
    *
    * @throws InterlockException
    *   INTERLOCK_INVALID_ARGUMENT if the table has no such version; INTERLOCK_REPAIR_REFUSED if it
    *   cannot be read without these files, or has to keep them, or one is being written; then they are
    *   all there. INTERLOCK_REPAIR_INCOMPLETE if a file cannot be deleted
    */
  def deleteSince(replaced: Long): Unit = {
    if (replaced > snapshot.version)
      throw InterlockException.invalidArgument(
        "the replaced version",
        replaced.toString,
        s"a version of the table, 0 to ${snapshot.version}"
      )
    CheckpointProtectionTableFeature
      .getCheckpointProtectionVersionOption(snapshot.protocol, snapshot.metadata)
      .filter(replaced <= _)
      .foreach { version =>
        val end = "DROP FEATURE checkpointProtection TRUNCATE HISTORY"
        throw refused(replaced, s"checkpoints to version $version are protected, until $end")
      }
    BackgroundCheckpoints.suspended(log.logPath, CheckpointMillis) {
      val states = since(replaced)(file =>
        FileNames.isCheckpointFile(file) || FileNames.isCompactedDeltaFile(file)
      )
      if (states.nonEmpty) {
        requireReadable(replaced)
        (log.LAST_CHECKPOINT +: states).foreach(delete)
      }
      deleteChecksums(replaced.min(snapshot.checkpointProvider.version))
    }.getOrElse(throw refused(replaced, "a checkpoint is being written, or the log cleaned up"))
  }

  private def deleteChecksums(first: Long): Unit =
    since(first)(FileNames.isChecksumFile).foreach(delete)

  private def since(version: Long)(isWanted: Path => Boolean): Seq[Path] =
    files.filter(file => isWanted(file) && FileNames.getFileVersion(file) >= version)

  /** Requires that the state before a version, which is read from a checkpoint of an earlier one or
    * from the table's beginning, and all commits since that can be read.
    */
  private def requireReadable(version: Long): Unit =
    try {
      val before = Option.when(version > 0)(
        log.getSnapshotAt(version - 1, catalogTableOpt = catalogTable)
      )
      before.fold(requireBeginning())(requireState)
      (before.fold(0L)(_.checkpointProvider.version + 1) to snapshot.version)
        .find(commits.countActions(_).forall(_ == 0))
        .foreach(missing => throw new FileNotFoundException(s"no commit $missing in the log"))
    } catch {
      case NonFatal(unreadable) => throw refused(version, s"without it, ${reason(unreadable)}")
    }

  private def requireBeginning(): Unit =
    if (!commits.definition(0).exists(first => first.protocol.nonEmpty && first.metadata.nonEmpty))
      throw new FileNotFoundException("no beginning of the table in the log")

  /** Requires that a state has protocol and metadata, as Delta does, and what its checksum says. */
  private def requireState(before: Snapshot): Unit = {
    val found = (before.numOfFiles, before.sizeInBytes)
    Checksums.of(before).map(checksum => (checksum.numFiles, checksum.tableSizeBytes))
      .filter(_ != found)
      .foreach { case (files, bytes) =>
        throw new IOException(
          s"version ${before.version} has ${found._1} files of ${found._2} bytes, but its " +
            s"checksum $files of $bytes: an earlier commit was replaced or is damaged"
        )
      }
  }

  private def refused(version: Long, reason: String) =
    InterlockException.repairRefused(table, version, reason)

  private def reason(error: Throwable) =
    Throwables.getRootCause(error).toString.linesIterator.next()

  private def delete(file: Path): Unit =
    try {
      val fs = file.getFileSystem(conf)
      if (!fs.delete(file, false) && fs.exists(file)) throw new IOException("it is still there")
    } catch {
      case NonFatal(failed) =>
        throw InterlockException.repairIncomplete(table, file.toString, reason(failed))
    }
}

private object DerivedFiles {
  private val CheckpointMillis = 60000L
}
