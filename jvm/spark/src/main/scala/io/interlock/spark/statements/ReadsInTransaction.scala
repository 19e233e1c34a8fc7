package io.interlock.spark.statements

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.properties.KernelTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.commands.cdc.CDCReader.DeltaCDFRelation
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.delta.interlock.judging.UnplannedScan
import org.apache.spark.sql.delta.interlock.ranges.RangeFileIndex
import org.apache.spark.sql.delta.interlock.transaction.{InterlockTransaction, PolicedCommands}
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex
import org.apache.spark.sql.delta.{DeltaLog, OptimisticTransaction, Snapshot}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}

/** Reports to a transaction all reads of its table by its statement.
  *
  * Delta tracks the scans that it plans while the transaction runs. This rule runs before Delta's:
  * it keeps the scans of a command's subqueries until the transaction plans them, and reports the
  * reads that Delta does not track.
  */
object ReadsInTransaction extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case command: RunnableCommand => PolicedCommands.of(command).transformExpressions {
        case query: SubqueryExpression =>
          query.withNewPlan(withFiles(query.plan) {
            case table: TahoeLogFileIndex if isKept(table) => UnplannedScan(table)
          })
      }
    case _ => OptimisticTransaction.getActive() match {
        case Some(transaction: InterlockTransaction) =>
          if (readsUntracked(plan, transaction.snapshot)) transaction.reads.addUntracked()
          withFiles(plan) { case UnplannedScan(table) => table }
        case _ => plan
      }
  }

  /** Whether scans of the table are kept: only if its policy judges by what was read. */
  private def isKept(table: TahoeLogFileIndex): Boolean =
    !table.isTimeTravelQuery && PolicedCommands.policyOf(table).exists(_.judgesReads)

  private def withFiles(plan: LogicalPlan)(
      other: PartialFunction[FileIndex, FileIndex]
  ): LogicalPlan = plan.transformWithSubqueries {
    case scan @ LogicalRelation(files: HadoopFsRelation, _, _, _, _)
        if other.isDefinedAt(files.location) =>
      scan.copy(relation = files.copy(location = other(files.location))(files.sparkSession))
  }

  /** Whether a plan reads the transaction's table other than by a scan that Delta tracks. A read of
    * an earlier version does not count, unless it is by Delta Kernel.
    */
  private def readsUntracked(plan: LogicalPlan, state: Snapshot): Boolean = {
    def isOf(log: DeltaLog) = log.isSameLogAs(state.deltaLog)
    def reaches(version: Long) = version >= state.version
    scans(plan).exists {
      case InMemoryRelation(_, cached, _) => reads(cached.logicalPlan, state)
      case KernelRead(log) => isOf(log)
      case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) =>
        isOf(changes.snapshotWithSchemaMode.snapshot.deltaLog) && changes.endingVersion.forall(
          reaches
        )
      case LogicalRelation(HadoopFsRelation(files: TahoeFileIndex, _, _, _, _, _), _, _, _, _)
          if isOf(files.deltaLog) =>
        files match {
          case range: RangeFileIndex => reaches(range.version)
          case table: TahoeLogFileIndex if table.isTimeTravelQuery => reaches(table.version)
          case planned: PreparedDeltaFileIndex =>
            planned.versionScanned.fold(planned.preparedScan.scannedSnapshot ne state)(reaches)
          case _ => false
        }
      case _ => false
    }
  }

  /** Whether a plan reads the table at any version. */
  private def reads(plan: LogicalPlan, state: Snapshot): Boolean = scans(plan).exists {
    case InMemoryRelation(_, cached, _) => reads(cached.logicalPlan, state)
    case KernelRead(log) => log.isSameLogAs(state.deltaLog)
    case LogicalRelation(HadoopFsRelation(files: TahoeFileIndex, _, _, _, _, _), _, _, _, _) =>
      files.deltaLog.isSameLogAs(state.deltaLog)
    case _ => false
  }

  private def scans(plan: LogicalPlan): Seq[LogicalPlan] = plan.collectWithSubqueries {
    case scan @ (_: LogicalRelation | _: InMemoryRelation | _: DataSourceV2Relation) => scan
  }
}

/** Matches a read through Delta Kernel, and gives the log of its table. */
private object KernelRead {
  def unapply(plan: LogicalPlan): Option[DeltaLog] = plan match {
    case relation: DataSourceV2Relation => Some(relation.table).collect {
        case kernel: DeltaV2Table =>
          KernelTable.throughDeltaLog(SparkSession.active, kernel).deltaLog
      }
    case _ => None
  }
}
