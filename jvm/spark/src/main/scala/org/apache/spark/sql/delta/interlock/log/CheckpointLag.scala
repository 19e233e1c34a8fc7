package org.apache.spark.sql.delta.interlock.log

import scala.concurrent.duration._

import com.google.common.cache.CacheBuilder
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.Snapshot

/** Keeps the last checkpoint of a small table within two intervals of the log's end: a commit that
  * would be farther ahead waits for a checkpoint, first in line.
  *
  * If two seconds bring no checkpoint that is near enough, it takes long or nobody writes one: then
  * commits of this process go on without waiting until there is one, or for a minute. Versions that
  * were there when the process made its first commit to the table do not count.
  *
  * @param now
  *   a clock, in nanoseconds
  */
final private[log] class CheckpointLag(now: () => Long) {
  import CheckpointLag._

  // Guarded by `this`.
  private var last: Option[Long] = None
  private var waitsSince: Option[Long] = None
  private var freeUntil = now()

  /** Whether the next commit has to wait.
    *
    * @param known
    *   the last version that is known to be in the log
    * @param isTaken
    *   whether a commit that is on its way has a version
    * @param lastCheckpoint
    *   reads the version of the last checkpoint
    */
  def isTooLong(known: Long, interval: Long, isTaken: Long => Boolean)(
      lastCheckpoint: => Option[Long]
  ): Boolean = synchronized {
    val time = now()
    def isBehind = {
      val latest = last.get + (Intervals * interval - OfOthers).max(interval)
      known >= latest || isTaken(latest)
    }
    if (last.isEmpty) last = Some(known)
    if (isBehind) last = Some(lastCheckpoint.fold(last.get)(_.max(last.get)))
    if (!isBehind) {
      waitsSince = None
      freeUntil = time
    } else if (waitsSince.exists(time - _ >= PatienceNanos)) {
      waitsSince = None
      freeUntil = time + FreeNanos
    } else if (time - freeUntil >= 0) waitsSince = waitsSince.orElse(Some(time))
    waitsSince.nonEmpty
  }
}

private[interlock] object CheckpointLag {
  private val Intervals = 2L

  /** Commits that other processes may make at the same time. */
  private val OfOthers = 3L
  private val PatienceNanos = 2.seconds.toNanos
  private val FreeNanos = 1.minute.toNanos

  private val lags =
    CacheBuilder.newBuilder().maximumSize(10000).build[(Path, String), CheckpointLag]()

  /** Whether the next commit to a table has to wait; see [[CheckpointLag.isTooLong]].
    *
    * @param table
    *   as the transaction has read it
    */
  def isTooLong(
      session: SparkSession,
      table: Snapshot,
      known: Long,
      isTaken: Long => Boolean
  ): Boolean = {
    val log = table.deltaLog
    val interval = log.checkpointInterval(table.metadata).toLong
    def lag =
      lags.get(log.logPath -> table.metadata.id, () => new CheckpointLag(() => System.nanoTime))
    def last = LastCheckpointFile.recently(log)
    SmallCheckpoints.areOf(session, table) &&
    lag.isTooLong(known, interval, isTaken)(last.map(_.version)) &&
    last.forall(SmallCheckpoints.isSmall)
  }
}
