package org.apache.spark.sql.delta.interlock.log

import scala.concurrent.duration._

import io.interlock.coordinator.Leases
import io.interlock.spark.commits.Coordinators
import org.apache.spark.util.ShutdownHookManager

/** The work to be done before the last session of a JVM stops. */
object SessionEnd {
  private val ShutdownMillis = 10000L

  /** Lets the JVM do it when it ends without stopping its session; further calls do nothing. */
  def install(): Unit = installed

  private lazy val installed: Unit = {
    val before = ShutdownHookManager.SPARK_CONTEXT_SHUTDOWN_PRIORITY + 1
    ShutdownHookManager.addShutdownHook(before)(() => finish(ShutdownMillis)): Unit
  }

  /** Waits for checkpoints, ends all claims, each at most for `millis` milliseconds, and closes the
    * coordinators' stores.
    */
  def finish(millis: Long): Unit = {
    val _ = BackgroundCheckpoints.awaitIdle(millis)
    try Leases.close(millis.millis)
    finally Coordinators.close()
  }
}
