package io.interlock.spark.statements

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.interlock.judging.UnplannedScan
import org.apache.spark.sql.delta.interlock.statement.{
  InterlockTransaction,
  PlanReads,
  PolicedCommands,
  SessionPolicy
}
import org.apache.spark.sql.execution.command.RunnableCommand
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
    case _ =>
      PlanReads.planning(plan)
      OptimisticTransaction.getActive() match {
        case Some(transaction: InterlockTransaction) =>
          transaction.reads.add(PlanReads.whileRunning(plan, transaction.snapshot))
          withFiles(plan) { case UnplannedScan(table) => table }
        case _ => plan
      }
  }

  /** Whether scans of the table are kept: only if its policy judges by what was read. */
  private def isKept(table: TahoeLogFileIndex): Boolean =
    (!table.isTimeTravelQuery || PlanReads.isNewest(table)) &&
      SessionPolicy.of(table).exists(_.judgesReads)

  private def withFiles(plan: LogicalPlan)(
      other: PartialFunction[FileIndex, FileIndex]
  ): LogicalPlan = plan.transformWithSubqueries {
    case scan @ LogicalRelation(files: HadoopFsRelation, _, _, _, _)
        if other.isDefinedAt(files.location) =>
      scan.copy(relation = files.copy(location = other(files.location))(files.sparkSession))
  }
}
