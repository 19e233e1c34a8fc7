package io.interlock.spark.properties

import java.util.{Collections, Locale}

import io.interlock.rules.NearestName
import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand

/** Warns of settings and properties that Spark and Delta accept, that nothing reads, and whose
  * names look like misspelt names of Interlock. Each is warned of once per process.
  *
  * A table property that begins with `interlock.` is refused instead, see [[TableProperties]].
  */
object Misspelt extends (LogicalPlan => Unit) with Logging {
  private val Prefixes = Seq("spark.interlock.", "interlock.")

  /** The complete keys of settings. */
  private val Settings =
    Seq(
      TableProperties.DefaultPolicyConf,
      Exclusive.Conf,
      Handshake.WheelVersionConf,
      CoordinatorSettings.MaxAttemptsConf,
      CommitMemorySettings.Conf,
      UiSettings.RetainedVerdictsConf,
      TraceSettings.Conf,
      RerunSettings.MaxRunsConf
    ) ++ CompactionSettings.confKeys ++ JudgingSettings.confKeys

  /** The prefixes of settings whose keys go on with a name chosen by the user. */
  private val Families = Seq(SessionPolicies.Prefix, CoordinatorSettings.Prefix)

  /** Delta's defaults of table properties, which set only those that Delta knows. */
  private val DeltaDefaults = "spark.databricks.delta.properties.defaults."

  /** The maximum edit distance between a name and the right one. */
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

  /** Checks the settings with which the process was started. */
  def warnOfStart(): Unit =
    Option(SparkEnv.get).foreach(env => warnOfSettings(env.conf.getAll.map(_._1).toSeq))

  def warnOfSettings(keys: Iterable[String]): Unit =
    for (key <- keys; meant <- setting(key)) warn("configuration", key, meant)

  /** @param keys
    *   the keys of properties that a table gets
    */
  def warnOfProperties(keys: Iterable[String]): Unit =
    for (key <- keys; meant <- property(key)) warn("table property", key, meant)

  /** The setting that a wrong key was probably meant to be. */
  private[spark] def setting(key: String): Option[String] = {
    val isKnown = Settings.contains(key) || Families.exists(family =>
      key.startsWith(family) && key.length > family.length
    )
    val own = key.split('.').drop(3).mkString(".")
    val known = Settings ++ Families.map(_ + (if (own.isEmpty) "<name>" else own))
    val isOurs = Prefixes.exists(key.toLowerCase(Locale.ROOT).startsWith(_))
    if (key.startsWith(DeltaDefaults)) default(key.stripPrefix(DeltaDefaults))
    else if (isKnown || !resembles(key)) None
    else meant(key, known, isOurs)
  }

  /** What gives new tables a property of Interlock. */
  private def default(property: String): Option[String] =
    Option.when(TableProperties.isOurs(property))(
      NearestName.of(property, TableProperties.Known)
    ).map {
      case TablePolicy.PolicyKey => TableProperties.DefaultPolicyConf
      case Exclusive.Key => Exclusive.Conf
      case own => s"the table property $own"
    }

  /** Whether the key's first or second word looks like `interlock`; most settings belong to Spark.
    */
  private def resembles(key: String): Boolean =
    key.split('.').take(2).exists(NearestName.distance(_, "interlock") <= FewLetters)

  /** The property that a wrong key was probably meant to be. */
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
