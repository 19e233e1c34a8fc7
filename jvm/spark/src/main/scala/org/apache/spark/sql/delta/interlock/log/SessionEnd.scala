package org.apache.spark.sql.delta.interlock.log

import scala.concurrent.duration._

import io.interlock.coordinator.Leases
import io.interlock.spark.commits.Coordinators

/** The work to be done before the last session of a JVM stops. */
object SessionEnd {

  /** Waits for checkpoints, ends all claims, each at most for `millis` milliseconds, and closes the
    * coordinators' stores.
    */
  def finish(millis: Long): Unit = {
    val _ = BackgroundCheckpoints.awaitIdle(millis)
    try Leases.close(millis.millis)
    finally Coordinators.close()
  }
}
