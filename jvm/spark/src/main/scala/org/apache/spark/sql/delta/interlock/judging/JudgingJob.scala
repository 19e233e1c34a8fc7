package org.apache.spark.sql.delta.interlock.judging

import java.util.UUID
import java.util.concurrent.{TimeUnit, TimeoutException}

import io.interlock.coordinator.Causes
import io.interlock.spark.properties.Setting
import org.apache.spark.sql.classic
import org.apache.spark.util.ThreadUtils
import org.apache.spark.{SparkException, TaskContext, TaskKilledException}

/** What a commit computes to find out whether it overlaps with a winner. It is cancelled if it takes
  * longer than the session allows.
  */
private[interlock] object JudgingJob {

  /** Unless the session has [[Setting.JudgingSeconds]]. */
  private val DefaultSeconds = 60L
  private lazy val clock = ThreadUtils.newDaemonSingleThreadScheduledExecutor("interlock-judging")

  /** Runs Spark jobs from this thread. */
  def run[A](session: classic.SparkSession)(jobs: => A): A = {
    val context = session.sparkContext
    val tag = s"interlock-judging-${UUID.randomUUID}"
    context.addJobTag(tag)
    try limited(session)(context.cancelJobsWithTag(tag, _))(jobs)
    finally context.removeJobTag(tag)
  }

  /** Computes rows in this thread, in a task of its own. */
  def inThread[A](session: classic.SparkSession)(read: TaskContext => A): A = {
    val task = TaskContext.empty()
    try limited(session)(task.markInterrupted)(read(task))
    catch { case killed: TaskKilledException => throw new TimeoutException(killed.reason) }
    finally task.markTaskCompleted(None)
  }

  /** Whether a failure is that somebody has cancelled the statement's jobs, and not this timeout. */
  def isCancelled(failure: Throwable): Boolean = Causes.of(failure).exists {
    case job: SparkException =>
      job.getCondition == "SPARK_JOB_CANCELLED" &&
      !job.getMessage.contains(Setting.JudgingSeconds.conf)
    case _ => false
  }

  /** @param cancel
    *   called again and again, since another job may start after the first call
    */
  private def limited[A](session: classic.SparkSession)(cancel: String => Unit)(rows: => A): A = {
    val seconds = Setting.JudgingSeconds.in(session.conf.getOption(_)).getOrElse(DefaultSeconds)
    val why = s"the rows were not compared within $seconds s (${Setting.JudgingSeconds.conf})"
    val late: Runnable = () => cancel(why)
    val due = clock.scheduleWithFixedDelay(late, seconds, 1, TimeUnit.SECONDS)
    try rows
    finally { val _ = due.cancel(false) }
  }
}
