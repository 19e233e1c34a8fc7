package org.apache.spark.sql.delta.interlock

import scala.concurrent.duration._
import scala.util.Try

import com.google.common.cache.CacheBuilder
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, LastCheckpointInfo, LogSegment, Snapshot}

/** Keeps the last checkpoint within two intervals of the log's end: commits of later versions wait
  * for the one that is being written, of which a busy table would otherwise be further and further
  * ahead.
  *
  * A checkpoint is waited for as long as it may be being written: a minute from the commit on that
  * made it due if this process writes it, otherwise ten seconds, since the process that was to write
  * it may have been killed.
  */
private object CheckpointLag {
  private val Intervals = 2
  private val PatienceMillis = 1.minute.toMillis
  private val PatienceForOthersMillis = 10.seconds.toMillis

  /** How often `_last_checkpoint` is read while commits wait. */
  private val LookNanos = 20.millis.toNanos

  /** What `_last_checkpoint` said, at least, and when it was read, in nanoseconds. */
  final private case class Seen(last: Long, at: Long)

  private val seen =
    CacheBuilder.newBuilder().maximumSize(10000).build[(Path, String), Seen]().asMap

  /** Whether the next commit is to wait for a checkpoint.
    *
    * @param known
    *   the log as far as it is known to be there
    * @param isTaken
    *   of a later version, whether a commit has it that is on its way
    */
  def isTooLong(
      log: DeltaLog,
      table: Snapshot,
      known: LogSegment,
      isTaken: Long => Boolean
  ): Boolean = {
    val id = log.logPath -> table.metadata.id
    val interval = log.checkpointInterval(table.metadata)
    def isBehind(last: Long) = {
      val latest = last + Intervals * interval
      known.version >= latest || isTaken(latest)
    }
    def isAwaited(last: Long) = {
      val patience =
        if (BackgroundCheckpoints.isWriting(log)) PatienceMillis else PatienceForOthersMillis
      val due = last - last % interval + interval
      !BackgroundCheckpoints.hasFailed(id) && known.deltas
        .find(FileNames.deltaVersion(_) == due)
        .exists(System.currentTimeMillis() - _.getModificationTime < patience)
    }
    val before = Option(seen.get(id)).map(_.last).getOrElse(0L)
      .max(known.checkpointProvider.version)
    isBehind(before) && {
      val last = read(log, id, before)
      isBehind(last) && isAwaited(last)
    }
  }

  private def read(log: DeltaLog, id: (Path, String), before: Long): Long = {
    val now = System.nanoTime()
    Option(seen.get(id)).filter(now - _.at < LookNanos).map(_.last).getOrElse {
      val found = Try {
        val lines = log.store.read(log.LAST_CHECKPOINT, log.newDeltaHadoopConf())
        LastCheckpointInfo.deserializeFromJson(lines.head, validate = false).version
      }
      val last = found.getOrElse(before).max(before)
      seen.put(id, Seen(last, now))
      last
    }
  }
}
