package org.apache.spark.sql.delta.interlock.transaction

import scala.util.Try

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.properties.KernelTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.Relocated.IncrementalExecution
import org.apache.spark.sql.delta.commands.cdc.CDCReader.DeltaCDFRelation
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.delta.interlock.ranges.RangeFileIndex
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Reads of a transaction's table in a plan, subqueries included, that Delta does not track. A read
  * of an earlier version that the plan names does not count, unless it is by Delta Kernel.
  */
object PlanReads {

  /** Whether there are any in a plan that is made while the transaction runs.
    *
    * @param state
    *   the table as the transaction reads it
    */
  def areUntracked(plan: LogicalPlan, state: Snapshot): Boolean = versions(plan, state) {
    case planned: PreparedDeltaFileIndex if planned.preparedScan.scannedSnapshot ne state =>
      state.version
  }.nonEmpty

  /** The earliest version that a micro-batch reads; none if it reads none. Spark plans it before the
    * transaction of its sink begins, and Delta does not look into its subqueries. A subquery that is
    * answered from metadata is gone from the optimized plan: it counts as a read of `state`.
    */
  private[transaction] def ofBatch(batch: IncrementalExecution, state: Snapshot): Option[Long] = {
    val planned = versions(batch.optimizedPlan, state) {
      case planned: PreparedDeltaFileIndex => planned.preparedScan.scannedSnapshot.version
    }
    val named = versions(batch.analyzed, state) { case _: TahoeLogFileIndex => state.version }
    (planned ++ named).minOption
  }

  /** The versions that a plan reads.
    *
    * @param current
    *   what a scan reads that names no version
    */
  private def versions(plan: LogicalPlan, state: Snapshot)(
      current: PartialFunction[TahoeFileIndex, Long]
  ): Seq[Long] = {
    def isOf(log: DeltaLog) = log.isSameLogAs(state.deltaLog)
    def reaches(version: Long) = version >= state.version
    scans(plan).flatMap {
      case InMemoryRelation(_, cached, _) => Option.when(reads(cached.logicalPlan, state))(
          state.version
        )
      case KernelRead(log) => Option.when(isOf(log))(state.version)
      case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) =>
        Option.when(reads(changes, state))(state.version)
      case LogicalRelation(HadoopFsRelation(files: TahoeFileIndex, _, _, _, _, _), _, _, _, _)
          if isOf(files.deltaLog) =>
        files match {
          case range: RangeFileIndex => Some(range.version).filter(reaches)
          case table: TahoeLogFileIndex if table.isTimeTravelQuery =>
            Some(table.version).filter(reaches)
          case planned: PreparedDeltaFileIndex if planned.versionScanned.nonEmpty =>
            planned.versionScanned.filter(reaches)
          case other => current.lift(other)
        }
      case _ => None
    }
  }

  /** Whether a plan that was cached reads the table, at any version if it does not read changes. */
  private def reads(plan: LogicalPlan, state: Snapshot): Boolean = scans(plan).exists {
    case InMemoryRelation(_, cached, _) => reads(cached.logicalPlan, state)
    case KernelRead(log) => log.isSameLogAs(state.deltaLog)
    case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) => reads(changes, state)
    case LogicalRelation(HadoopFsRelation(files: TahoeFileIndex, _, _, _, _, _), _, _, _, _) =>
      files.deltaLog.isSameLogAs(state.deltaLog)
    case _ => false
  }

  /** Whether the changes are those of the table up to the version that the transaction reads. */
  private def reads(changes: DeltaCDFRelation, state: Snapshot): Boolean =
    changes.snapshotWithSchemaMode.snapshot.deltaLog.isSameLogAs(state.deltaLog) &&
      changes.endingVersion.forall(_ >= state.version)

  private def scans(plan: LogicalPlan): Seq[LogicalPlan] = plan.collectWithSubqueries {
    case scan @ (_: LogicalRelation | _: InMemoryRelation | _: DataSourceV2Relation) => scan
  }
}

/** Matches a read through Delta Kernel, and gives the log of its table if it can be opened. */
private object KernelRead {
  def unapply(plan: LogicalPlan): Option[DeltaLog] =
    Some(plan).collect { case relation: DataSourceV2Relation => relation.table }
      .collect { case kernel: DeltaV2Table => kernel }
      .flatMap(kernel =>
        Try(KernelTable.throughDeltaLog(SparkSession.active, kernel).deltaLog).toOption
      )
}
