package io.interlock.spark.statements

import java.util.concurrent.TimeUnit

import io.delta.tables.execution.VacuumTableCommand
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.properties.TablePolicy
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.statement.RunningTransactions

/** Lets VACUUM keep the files that running jobs of any process need: those that they have read or
  * written, and the deletion vectors that their rebases load.
  */
object VacuumRetention extends Rule[LogicalPlan] with Logging {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case vacuum @ VacuumTableCommand(ResolvedTable(_, _, table: DeltaTableV2, _), _, _, _, _, _)
        if TablePolicy.named(table.initialSnapshot.metadata.configuration).nonEmpty =>
      complete(table)
      longer(table, vacuum.horizonHours).fold(vacuum)(hours =>
        vacuum.copy(horizonHours = Some(hours.toDouble))
      )
    case _ => plan
  }

  /** Makes the part of an atomic block visible that its process has left behind: else its files would
    * be nobody's.
    */
  private def complete(table: DeltaTableV2): Unit = {
    val now = table.deltaLog.update(catalogTableOpt = table.catalogTable)
    Coordinators
      .queue(SparkSession.active, table.deltaLog, now.metadata.configuration, now.metadata.id)
      .foreach(_.settle(now.version))
  }

  /** The hours that VACUUM must retain, if they are more than it would. */
  private def longer(table: DeltaTableV2, hours: Option[Double]): Option[Long] = {
    val kept = hours.fold(DeltaLog.tombstoneRetentionMillis(table.initialSnapshot.metadata))(h =>
      TimeUnit.HOURS.toMillis(math.round(h))
    )
    if (kept < RunningTransactions.Noted.toMillis) Thread.sleep(RunningTransactions.Noted.toMillis)
    RunningTransactions.oldest(table.deltaLog, kept).map { job =>
      val age = System.currentTimeMillis() - job.since
      val needed = TimeUnit.MILLISECONDS.toHours(age) + 1
      logWarning(
        s"VACUUM of ${table.name()} keeps the files of the last $needed h in place of the last " +
          s"${kept / 1000} s: a job of ${job.owner} has been running on it for ${age / 1000} s."
      )
      needed
    }
  }
}
