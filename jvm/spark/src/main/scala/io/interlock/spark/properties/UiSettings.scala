package io.interlock.spark.properties

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
    conf(RetainedVerdictsConf)
      .fold(DefaultRetained)(PositiveNumber.parse(RetainedVerdictsConf, _))
}
