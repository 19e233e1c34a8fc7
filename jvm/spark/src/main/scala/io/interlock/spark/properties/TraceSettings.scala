package io.interlock.spark.properties

/** Whether each commit to a table with a policy logs where its time went. */
object TraceSettings {
  val Conf = "spark.interlock.trace"

  /** Any value but `true` means no: it is read after the commit, which must not fail by it.
    *
    * @param conf
    *   the session's configuration by key
    */
  def isOn(conf: String => Option[String]): Boolean =
    conf(Conf).exists(_.trim.equalsIgnoreCase("true"))
}
