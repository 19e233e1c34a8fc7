package org.apache.spark.sql.delta.interlock.log

import java.util.Properties
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.{OldestVersions, OrphanFiles, QuickLocalFileSystem, TableLog}
import io.interlock.spark.audit.AuditTrail
import io.interlock.spark.commits.CommitTags
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{
  Checkpoints,
  CommittedTransaction,
  DeltaLog,
  Snapshot,
  TruncationGranularity
}
import org.apache.spark.util.ThreadUtils

/** Writes checkpoints after the commits, on a thread of its own, so that no commit waits for one
  * but as [[CheckpointLag]] says. After a checkpoint Delta cleans up the log; files that killed writers
  * left there are then deleted as well.
  *
  * In a process, a table has at most one checkpoint that is being written and one that waits, of
  * the newest version that is due. The next one does not wait for the cleaning after the last.
  *
  * A checkpoint is due at each multiple of the interval, as in Delta; it is of the newest version
  * that is known then. If none is there a minute after it was due, its writer may have been killed:
  * then every version is due until a checkpoint is begun. A checkpoint that failed is tried again
  * when the next is due.
  */
object BackgroundCheckpoints extends PostCommitHook with Logging {
  private val MissingAfterMillis = 60000L
  private val threads = ThreadUtils.newDaemonCachedThreadPool("interlock-checkpoint", 4)

  /** The checkpoint that waits; a newer one replaces it. */
  final private case class Due(
      session: SparkSession,
      snapshot: Snapshot,
      table: Option[CatalogTable]
  )

  /** The last version whose checkpoint this process began. */
  final private case class Begun(version: Long, hasFailed: Boolean)

  private val begun =
    CacheBuilder.newBuilder().maximumSize(10000).build[(Path, String), Begun]().asMap

  // Guarded by `this`.
  private val running = mutable.Map.empty[Path, Long]
  private val waiting = mutable.Map.empty[Path, Due]
  private val cleaning = mutable.Set.empty[Path]
  private var busyThreads = 0

  override val name: String = "Interlock checkpoint"

  override def run(session: SparkSession, committed: CommittedTransaction): Unit = {
    val log = committed.deltaLog
    val version = committed.committedVersion
    val after = committed.postCommitSnapshot
    val interval = log.checkpointInterval(after.metadata)
    val last = Option(begun.get(log.logPath -> after.metadata.id)).map(_.version)
      .filter(_ <= version)
      .getOrElse(0L)
      .max(synchronized(running.getOrElse(log.logPath, 0L)))
      .max(after.checkpointProvider.version)
    val next = last - last % interval + interval
    def isDue = version % interval == 0 ||
      version % interval == 1 && committed.committedActions.exists {
        case info: CommitInfo => info.tags.exists(_.contains(CommitTags.BlockId)) // of two versions
        case _ => false
      }
    if (version >= next && (isDue || isMissing(after, next)))
      write(session, after, committed.catalogTable)
  }

  /** Whether a checkpoint of an earlier version was due, and it seems that no process writes it. */
  private def isMissing(after: Snapshot, due: Long): Boolean = {
    val deltas = after.logSegment.deltas
    deltas.find(FileNames.deltaVersion(_) == due).forall(
      deltas.last.getModificationTime - _.getModificationTime >= MissingAfterMillis
    )
  }

  /** A checkpoint of a snapshot, whatever the interval. */
  def write(session: SparkSession, snapshot: Snapshot, table: Option[CatalogTable]): Unit =
    synchronized {
      val log = snapshot.deltaLog.logPath
      if (waiting.get(log).forall(_.snapshot.version < snapshot.version))
        waiting += log -> Due(session, snapshot, table)
      if (!running.contains(log)) start(log)
    }

  /** Whether Delta may find versions to delete; to see that, it asks for the status of each file of
    * the log. On a remote storage that costs no more than the names.
    */
  private def mayHaveExpired(log: DeltaLog): Boolean = {
    val metadata = log.unsafeVolatileSnapshot.metadata
    def isOld = {
      val kept = log.clock.getTimeMillis() - log.deltaRetentionMillis(metadata)
      val cutOff = log.truncateDate(kept, TruncationGranularity.DAY).getTimeInMillis
      OldestVersions.lastWritten(TableLog(log.logPath, log.newDeltaHadoopConf()))
        .exists(_ <= cutOff)
    }
    log.enableExpiredLogCleanup(metadata) && (!QuickLocalFileSystem.isLocal(log.logPath) || isOld)
  }

  private def write(due: Due): Unit = {
    import due.{session, snapshot}
    val log = snapshot.deltaLog
    SameLog.require(snapshot)
    val written = Try(
      SmallCheckpoints.write(session, snapshot)
        .getOrElse(Checkpoints.writeCheckpoint(session, log, snapshot, due.table))
    )
    if (!SameLog.isOf(snapshot)) SameLog.clear(snapshot, hasCheckpoint = written.isSuccess)
    SameLog.require(snapshot)
    LastCheckpointFile.write(session, log, written.get)
  }

  private def start(log: Path): Unit = waiting.remove(log).foreach { due =>
    running += log -> due.snapshot.version
    busyThreads += 1
    threads.execute { () =>
      var cleans = false
      try {
        SparkSession.setActiveSession(due.session)
        // The thread inherited the statement's local properties.
        due.session.sparkContext.setLocalProperties(new Properties)
        val isThere =
          try !due.session.sparkContext.isStopped && isWritten(due)
          finally synchronized {
              running -= log
              // In the same step, so that the log is not idle in between.
              cleans = cleaning.add(log)
              start(log)
            }
        if (cleans) clean(due, isThere)
      } finally {
        SparkSession.clearActiveSession()
        synchronized {
          if (cleans) cleaning -= log
          busyThreads -= 1
          notifyAll()
        }
      }
    }
  }

  /** Returns whether the checkpoint is written. */
  private def isWritten(due: Due): Boolean = {
    import due.snapshot.{deltaLog, version}
    val table = deltaLog.logPath -> due.snapshot.metadata.id
    val before = Option(begun.put(table, Begun(version, hasFailed = false)))
    try {
      write(due)
      true
    } catch {
      case NonFatal(error) =>
        begun.put(table, Begun(version, hasFailed = true))
        val what = s"No checkpoint of version $version of ${deltaLog.logPath}; " +
          "the next is tried when it is due."
        if (before.exists(_.hasFailed)) logInfo(what, error) else logWarning(what, error)
        false
    }
  }

  /** Cleans up after a checkpoint; while it does so, no other thread cleans up this log. */
  private def clean(due: Due, isWritten: Boolean): Unit = {
    import due.snapshot
    val log = snapshot.deltaLog
    try {
      if (isWritten) {
        if (mayHaveExpired(log)) log.doLogCleanup(snapshot, due.table)
        AuditTrail.sweep(log, snapshot.metadata)
      }
      val table = TableLog(log.logPath, log.newDeltaHadoopConf())
      val _ = OrphanFiles.sweep(table, OrphanFiles.LongestTransaction)
    } catch {
      case NonFatal(error) => logWarning(s"The log at ${log.logPath} was not swept.", error)
    }
  }

  /** Waits until no checkpoint is running or waiting and all is cleaned up, at most `millis`
    * milliseconds; returns whether that is so.
    */
  def awaitIdle(millis: Long): Boolean = synchronized {
    val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis)
    def left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())
    while (busyThreads > 0 && left > 0) wait(left.max(1))
    busyThreads == 0
  }
}
