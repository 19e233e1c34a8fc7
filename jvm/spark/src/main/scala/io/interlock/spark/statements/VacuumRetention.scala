package io.interlock.spark.statements

import java.util.concurrent.TimeUnit

import io.delta.tables.execution.VacuumTableCommand
import io.interlock.spark.properties.TableProperties
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.transaction.RunningTransactions
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Warns of a VACUUM with a shorter retention than running jobs need, since their rebases load
  * deletion vectors of the version that they read. Only jobs of this JVM are seen.
  */
object VacuumRetention extends (LogicalPlan => Unit) with Logging {
  override def apply(plan: LogicalPlan): Unit = plan match {
    case VacuumTableCommand(ResolvedTable(_, _, table: DeltaTableV2, _), hours, _, _, false, _)
        if TableProperties.named(table.initialSnapshot.metadata.configuration).nonEmpty =>
      warn(table.name(), table.initialSnapshot, hours)
    case _ =>
  }

  private def warn(table: String, snapshot: Snapshot, hours: Option[Double]): Unit = {
    val kept = hours.fold(DeltaLog.tombstoneRetentionMillis(snapshot.metadata))(h =>
      TimeUnit.HOURS.toMillis(math.round(h))
    )
    RunningTransactions.longestMillis(snapshot.metadata.id).filter(_ >= kept).foreach { running =>
      logWarning(
        s"VACUUM of $table keeps the files of the last ${kept / 1000} s, but a job on it runs for " +
          s"${running / 1000} s: if a compaction comes before its commit, it needs deletion " +
          "vectors that VACUUM deletes, and fails. Let VACUUM retain more than the longest job takes."
      )
    }
  }
}
