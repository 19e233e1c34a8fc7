package io.interlock.spark.properties

import io.interlock.rules.Policy
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.{DeltaConfigs, IsolationLevel}

/** The isolation level of a table with a policy. */
object TableIsolation extends Logging {
  private val Key = DeltaConfigs.ISOLATION_LEVEL.key

  /** The stricter of the policy's level and the one that the table's properties name. */
  def of(policy: Policy, properties: Map[String, String]): IsolationLevel = {
    val levels = policy.isolation +: properties.get(Key).toSeq
    levels.map(IsolationLevel.fromString).minBy(IsolationLevel.allLevelsInDescOrder.indexOf(_))
  }

  /** Warns if a statement combines an isolation level with a policy whose cells compare only
    * classes, so that the level has no effect.
    *
    * @param before
    *   the table's properties before the statement, and `after` it
    */
  def warn(table: String, before: Map[String, String], after: Map[String, String]): Unit =
    for {
      level <- after.get(Key)
      policy <- TablePolicy.policyOf(after) if !policy.judgesReads
      if !before.get(Key).contains(level) || !TablePolicy.named(before).contains(policy.name)
    } logWarning(
      s"$Key = $level has no effect on $table: the policy ${policy.name} decides by the classes " +
        "of two jobs, whatever they have read."
    )
}
