package org.apache.spark.sql.delta.interlock.log

import io.interlock.coordinator.Leases
import io.interlock.spark.commits.Coordinators

/** The work to be done before the last session of a JVM stops. */
object SessionEnd {

  /** Waits for checkpoints, at most `millis` milliseconds, and ends all claims, and closes the
    * coordinators' stores.
    */
  def finish(millis: Long): Unit = {
    val _ = BackgroundCheckpoints.awaitIdle(millis)
    Leases.close()
    Coordinators.close()
  }
}
