package io.interlock.coordinator

import scala.util.Try
import scala.util.matching.Regex

import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

/** Deletes the temporary and staged files that killed writers left in `_delta_log`. */
object OrphanFiles {
  private val logger = LoggerFactory.getLogger(getClass)
  private val Orphan: Regex = """\.(probe|_last_checkpoint|\d{20})\..+\.(tmp|staged)""".r

  /** The assumed maximum duration of a transaction in milliseconds: seven days. */
  val LongestTransaction: Long = 7L * 24 * 60 * 60 * 1000

  /** Deletes files by their age: the transaction of a younger file may still be running.
    *
    * @param olderThanMillis
    *   younger files are kept
    * @return
    *   the files that were deleted
    */
  def sweep(log: TableLog, olderThanMillis: Long): Seq[Path] = {
    val folder = LogFolder.of(log)
    val limit = System.currentTimeMillis() - olderThanMillis
    val orphans = folder.names().filter(Orphan.matches)
      .flatMap(folder.status)
      .filter(file => file.isFile && file.getModificationTime < limit)
    orphans.map(_.getPath).filter { path =>
      val deleted = Try(folder.delete(path.getName))
      deleted.failed.foreach(logger.warn(s"$path is left behind", _))
      deleted.isSuccess
    }
  }
}
