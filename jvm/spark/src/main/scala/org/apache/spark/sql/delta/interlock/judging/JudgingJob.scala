package org.apache.spark.sql.delta.interlock.judging

import java.util.UUID
import java.util.concurrent.TimeUnit

import io.interlock.spark.properties.JudgingSettings
import org.apache.spark.sql.classic
import org.apache.spark.util.ThreadUtils

/** Spark jobs that a commit needs to find out whether it overlaps with a winner. */
private[judging] object JudgingJob {
  private lazy val clock = ThreadUtils.newDaemonSingleThreadScheduledExecutor("interlock-judging")

  /** Runs jobs in this thread. They are cancelled if they take longer than the session allows, also
    * those that start later.
    */
  def run[A](session: classic.SparkSession)(jobs: => A): A = {
    val context = session.sparkContext
    val seconds = JudgingSettings.of(session.conf.getOption).timeoutSeconds
    val tag = s"interlock-judging-${UUID.randomUUID}"
    val why = s"the rows were not compared within $seconds s (${JudgingSettings.TimeoutConf})"
    val cancel: Runnable = () => context.cancelJobsWithTag(tag, why)
    context.addJobTag(tag)
    val due = clock.scheduleWithFixedDelay(cancel, seconds, 1, TimeUnit.SECONDS)
    try jobs
    finally {
      val _ = due.cancel(false)
      context.removeJobTag(tag)
    }
  }
}
