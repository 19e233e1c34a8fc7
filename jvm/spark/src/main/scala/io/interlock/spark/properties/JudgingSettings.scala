package io.interlock.spark.properties

import scala.util.Try

import io.interlock.spark.errors.InterlockException
import org.apache.spark.network.util.JavaUtils

/** How much a commit may do to find out whether two jobs overlap.
  *
  * @param maxSourceRows
  *   a source of no more rows is compared with a winner's rows in the committing thread, a
  *   larger one by a Spark job for each winner
  * @param timeoutSeconds
  *   a comparison of rows is cancelled after this time, and the commit fails
  */
final case class JudgingSettings(maxSourceRows: Int, timeoutSeconds: Long)

object JudgingSettings {
  val MaxSourceRowsConf = "spark.interlock.judging.maxSourceRows"
  val TimeoutConf = "spark.interlock.judging.timeout"

  val confKeys: Seq[String] = Seq(MaxSourceRowsConf, TimeoutConf)

  /** @param conf
    *   the session's configuration by key
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def of(conf: String => Option[String]): JudgingSettings = {
    def setting[A](key: String, default: A, expected: String)(parse: String => Option[A]): A =
      conf(key).fold(default)(text =>
        Try(parse(text)).toOption.flatten
          .getOrElse(throw InterlockException.invalidProperty(key, text, expected))
      )
    JudgingSettings(
      setting(MaxSourceRowsConf, 100000, "a number of rows")(_.trim.toIntOption.filter(_ >= 0)),
      setting(TimeoutConf, 60L, "a time of a second or more, such as 60s")(text =>
        Some(JavaUtils.timeStringAsSec(text)).filter(_ > 0)
      )
    )
  }
}
