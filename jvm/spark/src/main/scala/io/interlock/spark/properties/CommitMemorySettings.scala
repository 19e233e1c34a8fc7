package io.interlock.spark.properties

import scala.util.Try

import io.interlock.coordinator.CommitQueue
import io.interlock.spark.errors.InterlockException
import org.apache.spark.SparkEnv
import org.apache.spark.network.util.JavaUtils

/** How much of the commits of all tables a driver keeps in memory, to judge others by. */
object CommitMemorySettings {
  val Conf = "spark.interlock.commit.memory"
  private val Least = 64L << 10

  /** Applies the setting with which Spark was started.
    *
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def apply(): Unit =
    CommitQueue.keepAtMost(Option(SparkEnv.get).flatMap(_.conf.getOption(Conf)).map(parse))

  private def parse(text: String): Long =
    Try(JavaUtils.byteStringAsBytes(text)).toOption.filter(_ >= Least)
      .getOrElse(throw InterlockException.invalidProperty(
        Conf,
        text,
        "a size of 64k or more, such as 128m"
      ))
}
