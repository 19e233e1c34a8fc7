package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.commands.UpdateCommand
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.sources.DeltaSQLConf

/** Refuses to write files without statistics into a table with a policy, because row tracking needs
  * them. The transaction checks this before it writes a file. UPDATE writes deletion vectors before
  * that, so its plan is checked.
  */
object RequiredStatistics extends (LogicalPlan => Unit) {
  private val setting = DeltaSQLConf.DELTA_COLLECT_STATS

  override def apply(plan: LogicalPlan): Unit = plan match {
    case update: UpdateCommand => check(update.tahoeFileIndex)
    case _ =>
  }

  private def check(table: TahoeFileIndex): Unit =
    check(table.spark, s"delta.`${table.path}`", table.metadata)

  /** @throws InterlockException
    *   INTERLOCK_STATISTICS_REQUIRED
    */
  def check(session: SparkSession, table: String, metadata: Metadata): Unit =
    for {
      policy <- TablePolicy.named(metadata.configuration)
      if !session.sessionState.conf.getConf(setting)
    } throw InterlockException(
      "INTERLOCK_STATISTICS_REQUIRED",
      "table" -> table,
      "policy" -> policy,
      "key" -> setting.key
    )
}
