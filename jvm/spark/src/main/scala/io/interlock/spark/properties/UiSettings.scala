package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException

/** The tab of Spark's UI. */
object UiSettings {

  /** How many verdicts the tab lists: the newest. */
  val RetainedVerdictsConf = "spark.interlock.ui.retainedVerdicts"
  private val DefaultRetained = 1000

  /** @param conf
    *   what the driver, or the History Server, was started with
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def retainedVerdicts(conf: String => Option[String]): Int =
    conf(RetainedVerdictsConf).fold(DefaultRetained)(text =>
      text.trim.toIntOption.filter(_ > 0).getOrElse(
        throw InterlockException.invalidProperty(RetainedVerdictsConf, text, "a positive number")
      )
    )
}
