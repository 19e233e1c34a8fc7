package org.apache.spark.sql.delta.interlock.log

import io.interlock.coordinator.CommitBody
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.util.FileNames

/** The commits that an attempt has not read, in the order of their versions. The queue knows some
  * of them; the others are read in groups when they are asked for, and are not kept.
  *
  * @param files
  *   the commit files of all of them, in the log
  */
final private[interlock] class MissedCommits(
    deltaLog: DeltaLog,
    known: Seq[CommitBody],
    files: Seq[FileStatus] = Nil,
    whenRead: Seq[CommitBody] => Unit = _ => ()
) {
  import MissedCommits._

  private val ofQueue = byVersion(known)
  private var unread = files.filterNot(file => ofQueue.contains(FileNames.deltaVersion(file)))
  private var atHand = Map.empty[Long, CommitBody]

  /** None if the version is not among them. */
  def of(version: Long): Option[CommitBody] = ofQueue.get(version).orElse {
    if (!atHand.contains(version)) {
      unread = unread.dropWhile(FileNames.deltaVersion(_) < version)
      if (unread.headOption.exists(FileNames.deltaVersion(_) == version)) readOn()
    }
    atHand.get(version)
  }

  private def readOn(): Unit = {
    val sizes = unread.iterator.scanLeft(0L)(_ + _.getLen).drop(1)
    val (next, rest) = unread.splitAt(sizes.take(MostAtHand).takeWhile(_ <= MostBytes).size.max(1))
    unread = rest
    val read = CommitReader.read(deltaLog, next)
    atHand = byVersion(read)
    whenRead(read)
  }

  private def byVersion(commits: Seq[CommitBody]) =
    commits.map(body => body.version -> body).toMap
}

private object MissedCommits {
  private val MostAtHand = 64
  private val MostBytes = 16L << 20
}
