package org.apache.spark.sql.delta.interlock

import java.util.concurrent.ThreadLocalRandom

import io.interlock.spark.CoordinatorSettings
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession

/** How often a commit tries again after one of another process, and how long it stands back. */
private[interlock] object Attempts {
  private val MostConf = CoordinatorSettings.MaxAttemptsConf
  private val DefaultMost = 1000
  private val LongestPauseMillis = 200

  /** Waits before attempt `number` + 1, longer after each, and by chance: those that met part.
    *
    * @param isRace
    *   not so where processes take turns, and no wait is needed
    * @throws InterlockException
    *   INTERLOCK_TOO_MANY_ATTEMPTS
    */
  def pause(spark: SparkSession, table: String, number: Int, isRace: Boolean): Unit = {
    val most = spark.conf.get(MostConf, DefaultMost.toString).toInt
    if (number >= most) throw InterlockException.tooManyAttempts(table, most, MostConf)
    if (isRace) {
      val longest = math.min(LongestPauseMillis.toLong, 1L << math.min(number, 16))
      Thread.sleep(ThreadLocalRandom.current().nextLong(longest + 1))
    }
  }
}
