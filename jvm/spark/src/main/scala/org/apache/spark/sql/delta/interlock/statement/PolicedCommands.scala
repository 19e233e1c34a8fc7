package org.apache.spark.sql.delta.interlock.statement

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.commands.{DeleteCommand, MergeIntoCommand, UpdateCommand}
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations, OptimisticTransaction}
import org.apache.spark.sql.execution.command.RunnableCommand

/** Delta's commands that change rows, for tables with a policy: they tell their transactions what
  * they do.
  */
object PolicedCommands {

  /** The command, as one that tells its transaction what it does if the table has a policy. */
  def of(command: RunnableCommand): RunnableCommand = {
    command match {
      case merge: MergeIntoCommand => refuseOlder(merge.target)
      case update: UpdateCommand => refuseOlder(update.target)
      case delete: DeleteCommand => refuseOlder(delete.target)
      case _ =>
    }
    policed(command)
  }

  private def policed(command: RunnableCommand): RunnableCommand = command match {
    case _: PolicedMerge | _: PolicedUpdate | _: PolicedDelete => command
    case merge: MergeIntoCommand if SessionPolicy.of(merge.targetFileIndex).nonEmpty =>
      PolicedMerge.of(merge)
    case update: UpdateCommand if SessionPolicy.of(update.tahoeFileIndex).nonEmpty =>
      import update._
      new PolicedUpdate(tahoeFileIndex, catalogTable, target, updateExpressions, condition)
    case delete: DeleteCommand
        if SessionPolicy.of(delete.deltaLog.unsafeVolatileSnapshot.metadata).nonEmpty =>
      import delete._
      new PolicedDelete(deltaLog, catalogTable, target, condition)
    case _ => command
  }

  /** Refuses a plan of the table without its policy: Delta would look there for columns of row
    * tracking, which the policy has brought.
    */
  private def refuseOlder(plan: LogicalPlan): Unit = plan.foreach {
    case PlanReads.Scan(planned) if SessionPolicy.of(planned).isEmpty =>
      SessionPolicy.of(planned.deltaLog.unsafeVolatileSnapshot.metadata).foreach(policy =>
        throw InterlockException.madeBeforePolicy(planned.path.toString, policy.name)
      )
    case _ =>
  }
}

/** An UPDATE; the parameters are those of Delta's command. */
final class PolicedUpdate(
    index: TahoeFileIndex,
    catalogTable: Option[CatalogTable],
    of: LogicalPlan,
    values: Seq[Expression],
    where: Option[Expression]
) extends UpdateCommand(index, catalogTable, of, values, where)
    with ChangesRows {
  override protected def logName: String = classOf[UpdateCommand].getName

  override def shouldWritePersistentDeletionVectors(
      spark: SparkSession,
      transaction: OptimisticTransaction
  ): Boolean = {
    refuseNewColumns(transaction, index.metadata)
    tell(
      transaction,
      DeltaOperations.Update(where),
      super.shouldWritePersistentDeletionVectors(spark, transaction),
      isConfined = !(values ++ where).exists(SubqueryExpression.hasSubquery) &&
        index.partitionSchema.forall(column =>
          of.output.zip(values).exists { case (named, value) =>
            named.name == column.name && named.semanticEquals(value)
          }
        )
    )
  }
}

/** A DELETE; the parameters are those of Delta's command. */
final class PolicedDelete(
    log: DeltaLog,
    catalogTable: Option[CatalogTable],
    of: LogicalPlan,
    where: Option[Expression]
) extends DeleteCommand(log, catalogTable, of, where)
    with ChangesRows {
  override protected def logName: String = classOf[DeleteCommand].getName

  override def shouldWritePersistentDeletionVectors(
      spark: SparkSession,
      transaction: OptimisticTransaction
  ): Boolean = {
    val marksRows = super.shouldWritePersistentDeletionVectors(spark, transaction)
    if (!marksRows) of.collectFirst { case PlanReads.Scan(index) => index.metadata }
      .foreach(refuseNewColumns(transaction, _))
    val isConfined = !where.exists(SubqueryExpression.hasSubquery)
    tell(transaction, DeltaOperations.Delete(where.toSeq), marksRows, isConfined)
  }
}
