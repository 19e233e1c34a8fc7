package org.apache.spark.sql.delta.interlock.commit

import java.util.concurrent.ThreadLocalRandom

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.Setting
import org.apache.spark.sql.SparkSession

/** How often a commit is retried after a commit of another process, and how long it waits before.
  */
object Backoff {
  private val DefaultMost = 1000
  private val LongestPauseMillis = 200

  /** Waits before try `number` + 1 for a random time, which grows with each try, so that
    * processes do not collide again.
    *
    * @param isRace
    *   false if the processes take turns, so that no wait is needed
    * @throws InterlockException
    *   INTERLOCK_TOO_MANY_ATTEMPTS, INTERLOCK_INVALID_PROPERTY
    */
  def pause(spark: SparkSession, table: String, number: Int, isRace: Boolean): Unit = {
    val most = Setting.MaxAttempts.in(spark.conf.getOption(_)).getOrElse(DefaultMost)
    if (number >= most)
      throw InterlockException(
        "INTERLOCK_TOO_MANY_ATTEMPTS",
        "table" -> table,
        "attempts" -> most.toString,
        "key" -> Setting.MaxAttempts.conf
      )
    if (isRace) {
      val longest = math.min(LongestPauseMillis.toLong, 1L << math.min(number, 16))
      Thread.sleep(ThreadLocalRandom.current().nextLong(longest + 1))
    }
  }
}
