package org.apache.spark.sql.delta.interlock.statement

import java.io.IOException
import java.util.{Collections, UUID, WeakHashMap}

import scala.collection.concurrent.TrieMap
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.interlock.coordinator.{BackgroundWork, Leases, TableLog}
import io.interlock.spark.audit.RunningJob
import io.interlock.spark.properties.TablePolicy
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.{DeltaLog, OptimisticTransaction}

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

  private val byTransaction =
    Collections.synchronizedMap(new WeakHashMap[OptimisticTransaction, RunningJob])
  private val running = byTransaction.asScala

  def start(transaction: OptimisticTransaction): Unit =
    if (TablePolicy.named(transaction.snapshot.metadata.configuration).nonEmpty) {
      val context = SparkSession.active.sparkContext
      val owner = s"${context.sparkUser} in ${context.applicationId}"
      running += transaction -> RunningJob(System.currentTimeMillis(), owner)
      notes
    }

  def end(transaction: OptimisticTransaction): Unit = running -= transaction

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
    longEnough(own(beforeMillis = 0).get(log.logPath).map(_.job) ++ others(log))
      .minByOption(_.since)
  }

  private def others(log: DeltaLog): Seq[RunningJob] =
    try leases(log).all().filter(_._1 != process).flatMap { case (_, text) => RunningJob.of(text) }
    catch {
      case failed: IOException =>
        logWarning(s"The jobs of other processes on ${log.dataPath} are not known.", failed)
        Nil
    }

  private case class Oldest(log: DeltaLog, job: RunningJob)

  /** The oldest job of this process for each log, of those that have been running for some time. */
  private def own(beforeMillis: Long): Map[Path, Oldest] = {
    val latest = System.currentTimeMillis() - beforeMillis
    byTransaction.synchronized(running.toSeq)
      .collect {
        case (transaction, job) if job.since <= latest =>
          Oldest(transaction.deltaLog, job)
      }
      .groupBy(_.log.logPath).view.mapValues(_.minBy(_.job.since)).toMap
  }

  /** Writes the notes, from the first transaction on. */
  private lazy val notes: Unit = {
    val work = new BackgroundWork("interlock-running")
    work.every(BetweenNotes) {
      val now = own(BetweenNotes.toMillis)
      (now.keySet ++ noted.keySet).foreach(path => work.start(path)(note(path, now.get(path))))
    }
  }

  /** What this process has noted, for each log. */
  private val noted = TrieMap.empty[Path, (Leases, RunningJob)]

  /** Writes or removes the note of one log. If it cannot be written, the next call tries again. */
  private def note(path: Path, running: Option[Oldest]): Unit =
    try
      running match {
        case None => noted.remove(path).foreach(_._1.remove(process))
        case Some(Oldest(log, job)) =>
          if (!noted.get(path).exists(_._2 == job)) {
            val leases = this.leases(log)
            noted -= path
            leases.put(process, job.toJson, Longest)
            noted += path -> (leases -> job)
          }
      }
    catch { case NonFatal(failed) => logDebug("A note of a running job", failed) }

  private def leases(log: DeltaLog) =
    new Leases(TableLog(log.logPath, log.newDeltaHadoopConf()), Kind)
}
