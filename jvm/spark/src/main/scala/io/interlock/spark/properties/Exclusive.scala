package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException

/** Whether a table keeps out writers without Interlock: a table property, and a setting of the
  * session for new tables with a policy.
  */
object Exclusive {
  val Key = "interlock.exclusive"
  val Conf = "spark.interlock.exclusive"

  /** The feature of the table's protocol that keeps them out. */
  val Feature = "interlock"

  /** Whether a table with these properties does so: only one with a policy can, whoever has set the
    * property.
    */
  def of(properties: Map[String, String]): Boolean =
    isSet(properties) && TablePolicy.named(properties).nonEmpty

  private def isSet(properties: Map[String, String]): Boolean =
    properties.get(Key).exists(parse(Key, _))

  /** @throws InterlockException
    *   INTERLOCK_INVALID_PROPERTY
    */
  def check(properties: Map[String, String]): Unit = {
    val _ = isSet(properties)
  }

  /** The property that a new table with a policy gets. */
  def default(conf: String => Option[String]): Option[(String, String)] =
    conf(Conf).filter(parse(Conf, _)).map(_ => Key -> "true")

  /** Refuses to keep others out of a table without a policy.
    *
    * @param before
    *   the table's properties before the statement; writers without Interlock can set any
    */
  def refuseWithoutPolicy(before: Map[String, String], properties: Map[String, String]): Unit =
    if (isSet(properties) && before.get(Key) != properties.get(Key))
      throw InterlockException.invalidProperty(
        Key,
        properties(Key),
        s"true only in a table with a policy: set '${TablePolicy.PolicyKey}' as well"
      )

  private def parse(key: String, value: String): Boolean = value.toBooleanOption
    .getOrElse(throw InterlockException.invalidProperty(key, value, "true or false"))
}
