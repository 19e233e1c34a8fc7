package io.interlock.spark.properties

import java.util.{Collections, Locale}

import io.interlock.rules.NearestName
import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand

/** Warns of names that Spark and Delta take, that nothing reads, and that look like a name of
  * Interlock's: each once per process.
  *
  * A table property that begins with `interlock.` is refused instead, see [[TableProperties]].
  */
object Misspelt extends (LogicalPlan => Unit) with Logging {
  private val Prefixes = Seq("spark.interlock.", "interlock.")

  /** Settings by their whole keys. */
  private val Settings =
    Seq(
      TableProperties.DefaultPolicyConf,
      Handshake.WheelVersionConf,
      CoordinatorSettings.MaxAttemptsConf,
      UiSettings.RetainedVerdictsConf
    ) ++ CompactionSettings.confKeys

  /** Settings by the beginning of their keys; a name of the user's follows. */
  private val Families = Seq(SessionPolicies.Prefix, CoordinatorSettings.Prefix)

  /** How many letters a name may be away from the right one. */
  private val FewLetters = 3

  private val warned = Collections.newSetFromMap(
    new java.util.LinkedHashMap[String, java.lang.Boolean] {
      override def removeEldestEntry(
          eldest: java.util.Map.Entry[String, java.lang.Boolean]
      ): Boolean = size > 1000
    }
  )

  /** Sees the statement `SET key = value`. */
  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(_)))) => warnOfSettings(Seq(key))
    case _ =>
  }

  /** What the process was started with. */
  def warnOfStart(): Unit =
    Option(SparkEnv.get).foreach(env => warnOfSettings(env.conf.getAll.map(_._1).toSeq))

  def warnOfSettings(keys: Iterable[String]): Unit =
    for (key <- keys; meant <- setting(key)) warn("configuration", key, meant)

  /** @param keys
    *   of properties that a table gets
    */
  def warnOfProperties(keys: Iterable[String]): Unit =
    for (key <- keys; meant <- property(key)) warn("table property", key, meant)

  /** The setting that was meant by a key that is none. */
  private[spark] def setting(key: String): Option[String] = {
    val isKnown = Settings.contains(key) || Families.exists(family =>
      key.startsWith(family) && key.length > family.length
    )
    val own = key.split('.').drop(3).mkString(".")
    val known = Settings ++ Families.map(_ + (if (own.isEmpty) "<name>" else own))
    val isOurs = Prefixes.exists(key.toLowerCase(Locale.ROOT).startsWith(_))
    if (isKnown || !resembles(key)) None else meant(key, known, isOurs)
  }

  /** Whether its first or second word may be meant for `interlock`; most settings are not ours. */
  private def resembles(key: String): Boolean =
    key.split('.').take(2).exists(NearestName.distance(_, "interlock") <= FewLetters)

  /** The property that was meant by a key that is none. */
  private[spark] def property(key: String): Option[String] =
    if (TableProperties.isOurs(key)) None else meant(key, TableProperties.Known, isOurs = false)

  private def meant(key: String, known: Seq[String], isOurs: Boolean): Option[String] = {
    val nearest = NearestName.of(key, known)
    val isNear = NearestName.distance(key, nearest) <= FewLetters
    Option.when(isOurs || isNear)(nearest).orElse(known.find(name => key.endsWith(s".$name")))
  }

  private def warn(what: String, key: String, meant: String): Unit =
    if (warned.synchronized(warned.add(key)))
      logWarning(s"Nothing reads the $what $key: did you mean $meant?")
}
