package org.apache.spark.sql.delta.interlock

import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.util.control.NonFatal

import io.interlock.coordinator.{Sweeper, TableLog}
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.sql.delta.{CommittedTransaction, Snapshot}
import org.apache.spark.util.{ShutdownHookManager, ThreadUtils}

/** Writes checkpoints behind the commits: no commit waits for one. As Delta cleans the log after
  * each, so are files that killed writers left there swept.
  *
  * A table has at most one running and one waiting, that of the newest version due. A version is due
  * when the interval has passed since the last checkpoint, so that a writer makes up for one that
  * was killed.
  */
object BackgroundCheckpoints extends PostCommitHook with Logging {
  private val ShutdownMillis = 10000L
  private val threads = ThreadUtils.newDaemonCachedThreadPool("interlock-checkpoint", 2)

  /** One that waits; the newest replaces the others. */
  final private case class Due(session: SparkSession, version: Long, write: () => Unit)

  // Guarded by `this`.
  private val running = mutable.Map.empty[Path, Long]
  private val waiting = mutable.Map.empty[Path, Due]

  override val name: String = "Interlock checkpoint"

  override def run(session: SparkSession, committed: CommittedTransaction): Unit = {
    val log = committed.deltaLog
    val version = committed.committedVersion
    val after = committed.postCommitSnapshot
    val interval = log.checkpointInterval(after.metadata)
    val last = synchronized(running.getOrElse(log.logPath, -1L))
      .max(after.checkpointProvider.version)
    if (committed.maintenanceOperation.shouldCheckpoint || version - last.max(0) >= interval)
      add(session, log.logPath, version) { () =>
        val exact = log.getSnapshotAt(
          version,
          lastCheckpointProvider = Some(after.checkpointProvider),
          lastCheckpointHint = None,
          catalogTableOpt = committed.catalogTable,
          enforceTimeTravelWithinDeletedFileRetention = false
        )
        log.checkpoint(exact, committed.catalogTable)
        AuditTrail.sweep(log, exact.metadata)
      }
  }

  /** A checkpoint of a snapshot, whatever the interval. */
  def write(session: SparkSession, snapshot: Snapshot, table: Option[CatalogTable]): Unit =
    add(session, snapshot.deltaLog.logPath, snapshot.version) { () =>
      snapshot.deltaLog.checkpoint(snapshot, table)
      AuditTrail.sweep(snapshot.deltaLog, snapshot.metadata)
    }

  private def add(session: SparkSession, log: Path, version: Long)(write: () => Unit): Unit =
    synchronized {
      if (waiting.get(log).forall(_.version < version))
        waiting += log -> Due(session, version, write)
      if (!running.contains(log)) start(log)
    }

  private def start(log: Path): Unit = waiting.remove(log).foreach { due =>
    running += log -> due.version
    threads.execute { () =>
      try {
        SparkSession.setActiveSession(due.session)
        if (!due.session.sparkContext.isStopped) due.write()
        val conf = due.session.sessionState.newHadoopConf()
        val _ = Sweeper.sweep(TableLog(log, conf), Sweeper.LongestTransaction)
      } catch {
        case NonFatal(error) => logWarning(s"No checkpoint of version ${due.version}.", error)
      } finally {
        SparkSession.clearActiveSession()
        synchronized {
          running -= log
          start(log)
          if (running.isEmpty) notifyAll()
        }
      }
    }
  }

  // Of a JVM that ends without stopping its session; the next writer makes up for what is cut off.
  ShutdownHookManager.addShutdownHook(ShutdownHookManager.SPARK_CONTEXT_SHUTDOWN_PRIORITY + 1) {
    () => SessionEnd.finish(ShutdownMillis)
  }

  /** Waits until none is running or waiting, at most `millis` milliseconds; tells whether so. */
  def awaitIdle(millis: Long): Boolean = synchronized {
    val end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis)
    def left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())
    while (running.nonEmpty && left > 0) wait(left.max(1))
    running.isEmpty
  }
}
