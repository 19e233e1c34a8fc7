package org.apache.spark.sql.delta.interlock.transaction

import java.io.IOException
import java.util.concurrent.{Executors, TimeUnit}
import java.util.{Collections, UUID, WeakHashMap}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.interlock.coordinator.{Leases, TableLog}
import io.interlock.spark.commits.{RunningChange, RunningJob}
import io.interlock.spark.properties.TableProperties
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog

/** The transactions on tables with a policy that may still commit. A transaction that is given up
  * without a commit is removed by the garbage collector.
  *
  * For tables on which a transaction runs longer than a moment, the process leaves a note beside the
  * log that tells since when (see [[Leases]]).
  */
object RunningTransactions extends Logging {
  private val Kind = "running"
  private val process = UUID.randomUUID.toString
  private val Longest = 30.days
  private val BetweenNotes = 2.seconds

  /** A transaction of another process that has run longer than this has been noted, if that
    * process can write beside the log.
    */
  val Noted: FiniteDuration = BetweenNotes * 2 + 1.second

  private val since =
    Collections.synchronizedMap(new WeakHashMap[InterlockTransaction, Long])
  private val running = since.asScala

  def start(transaction: InterlockTransaction): Unit =
    if (TableProperties.named(transaction.snapshot.metadata.configuration).nonEmpty) {
      running += transaction -> System.currentTimeMillis()
      notes
    }

  def end(transaction: InterlockTransaction): Unit = running -= transaction

  /** The job of any process that has been running on a table for the longest time. If another
    * process has noted such a job, it waits until it is clear that this process is alive.
    *
    * @param millis
    *   jobs that have been running for less time do not count
    */
  def oldest(log: DeltaLog, millis: Long): Option[RunningJob] = {
    def longEnough(jobs: Iterable[RunningJob]) =
      jobs.filter(System.currentTimeMillis() - _.since >= millis)
    System.gc() // forgets the transactions that were given up
    if (longEnough(others(log)).nonEmpty) Thread.sleep(Leases.DeadAfter.toMillis)
    longEnough(own(beforeMillis = 0).get(log.logPath).map(_._2) ++ others(log)).minByOption(_.since)
  }

  /** The jobs of this process on a table for which compactions make way. */
  def changes(log: DeltaLog): Seq[RunningChange] =
    started.filter(_._1.deltaLog.logPath == log.logPath).flatMap(changeOf)

  /** Those of other processes, as far as they have been noted. */
  def changesOfOthers(log: DeltaLog): Seq[RunningChange] = others(log).flatMap(_.changes)

  /** Who runs the jobs of this process. */
  def owner(session: SparkSession): String =
    s"${session.sparkContext.sparkUser} in ${session.sparkContext.applicationId}"

  private def changeOf(transaction: (InterlockTransaction, Long)) =
    transaction._1.yieldedFor(transaction._2)

  private def started = since.synchronized(running.toSeq)

  private def others(log: DeltaLog): Seq[RunningJob] =
    try leases(log).all().filter(_._1 != process).flatMap { case (_, text) => RunningJob.of(text) }
    catch {
      case failed: IOException =>
        logWarning(s"The jobs of other processes on ${log.dataPath} are not known.", failed)
        Nil
    }

  /** The oldest job of this process for each log. */
  private def own(beforeMillis: Long): Map[Path, (DeltaLog, RunningJob)] = {
    val latest = System.currentTimeMillis() - beforeMillis
    started.filter(_._2 <= latest).groupBy(_._1.deltaLog.logPath).map { case (path, several) =>
      val (oldest, start) = several.minBy(_._2)
      val changes = several.flatMap(changeOf).sortBy(_.since)
      path -> (oldest.deltaLog -> RunningJob(start, owner(oldest.session), changes))
    }
  }

  /** Writes the notes, from the first transaction on. */
  private lazy val notes: Unit = {
    val threads = Executors.newSingleThreadScheduledExecutor { work =>
      val thread = new Thread(work, "interlock-running")
      thread.setDaemon(true)
      thread
    }
    val pause = BetweenNotes.toMillis
    threads.scheduleWithFixedDelay(
      () => tried(note()): Unit,
      pause,
      pause,
      TimeUnit.MILLISECONDS
    ): Unit
  }

  /** What this process has noted; used by one thread. */
  private var noted = Map.empty[Path, (Leases, RunningJob)]

  private def note(): Unit = {
    val now = own(BetweenNotes.toMillis)
    noted.foreach { case (path, (leases, _)) =>
      if (!now.contains(path)) tried(leases.remove(process))
    }
    noted = now.flatMap { case (path, (log, job)) =>
      noted.get(path).filter(_._2 == job).orElse(tried {
        val leases = this.leases(log)
        leases.put(process, job.toJson, Longest)
        leases -> job
      }).map(path -> _)
    }
  }

  /** A note that fails is tried again the next time. */
  private def tried[A](work: => A): Option[A] =
    try Some(work)
    catch {
      case NonFatal(failed) =>
        logDebug("A note of a running job", failed)
        None
    }

  private def leases(log: DeltaLog) =
    new Leases(TableLog(log.logPath, log.newDeltaHadoopConf()), Kind)
}
