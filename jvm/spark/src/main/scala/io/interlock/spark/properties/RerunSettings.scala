package io.interlock.spark.properties

/** How often a statement that loses a conflict is run, the first run included: a table property, or
  * for tables without it a setting.
  */
object RerunSettings {
  val MaxRunsProperty = "interlock.rerun.maxRuns"
  val MaxRunsConf = "spark.interlock.rerun.maxRuns"

  /** @param conf
    *   the session's configuration by key
    * @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def maxRuns(properties: Map[String, String], conf: String => Option[String]): Int =
    properties.get(MaxRunsProperty).map(PositiveNumber.parse(MaxRunsProperty, _))
      .orElse(conf(MaxRunsConf).map(PositiveNumber.parse(MaxRunsConf, _)))
      .getOrElse(1)

  /** @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def check(properties: Map[String, String]): Unit =
    properties.get(MaxRunsProperty).foreach(PositiveNumber.parse(MaxRunsProperty, _))
}
