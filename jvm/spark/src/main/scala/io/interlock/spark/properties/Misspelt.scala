package io.interlock.spark.properties

import java.util.concurrent.ConcurrentHashMap

import io.interlock.rules.NearestName
import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand

/** Warns, once per process, of settings of Interlock that nothing reads, and of table properties
  * whose names look like those of Interlock.
  *
  * A table property that begins with `interlock.` is refused instead, see [[TableProperties]].
  */
object Misspelt extends (LogicalPlan => Unit) with Logging {

  /** The complete keys of settings. */
  private val Settings =
    Seq(TableProperties.DefaultPolicyConf, Exclusive.Conf, Handshake.WheelVersionConf) ++
      Setting.all.map(_.conf)

  /** The prefixes of settings whose keys go on with a name chosen by the user. */
  private val Families = Seq(SessionPolicies.Prefix, CoordinatorSettings.Prefix)

  /** The maximum edit distance between a property's name and the right one. */
  private val FewLetters = 3

  private val warned = ConcurrentHashMap.newKeySet[String]()

  /** Sees the statement `SET key = value`. */
  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(_)))) => warnOfSettings(Seq(key))
    case _ =>
  }

  /** Checks the settings with which the process was started. */
  def warnOfStart(): Unit =
    Option(SparkEnv.get).foreach(env => warnOfSettings(env.conf.getAll.map(_._1).toSeq))

  def warnOfSettings(keys: Iterable[String]): Unit = for {
    key <- keys if key.startsWith("spark.interlock.")
    if !Settings.contains(key) && !Families.exists(key.startsWith)
    meant = NearestName.of(key, Settings ++ Families)
  } warn("configuration", key, if (Families.contains(meant)) s"$meant<name>" else meant)

  def warnOfProperties(keys: Iterable[String]): Unit = for {
    key <- keys if !TableProperties.isOurs(key)
    meant = NearestName.of(key, TableProperties.Known)
    if NearestName.distance(key, meant) <= FewLetters
  } warn("table property", key, meant)

  private def warn(what: String, key: String, meant: String): Unit =
    if (warned.add(key)) logWarning(s"Nothing reads the $what $key: did you mean $meant?")
}
