package org.apache.spark.sql.delta.interlock.transaction

import scala.util.Try

import io.interlock.rules.Policy
import io.interlock.spark.properties.TableProperties
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.commands.{DeleteCommand, MergeIntoCommand, UpdateCommand}
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations, OptimisticTransaction}
import org.apache.spark.sql.execution.command.RunnableCommand

/** Delta's commands that change rows, for tables with a policy: they tell their transactions what
  * they do.
  */
object PolicedCommands {

  /** The command, as one that tells its transaction what it does if the table has a policy. */
  def of(command: RunnableCommand): RunnableCommand = command match {
    case _: PolicedMerge | _: PolicedUpdate | _: PolicedDelete => command
    case merge: MergeIntoCommand if policyOf(merge.targetFileIndex).nonEmpty =>
      PolicedMerge.of(merge)
    case update: UpdateCommand if policyOf(update.tahoeFileIndex).nonEmpty =>
      import update._
      new PolicedUpdate(tahoeFileIndex, catalogTable, target, updateExpressions, condition)
    case delete: DeleteCommand
        if policyOf(delete.deltaLog.unsafeVolatileSnapshot.metadata).nonEmpty =>
      import delete._
      new PolicedDelete(deltaLog, catalogTable, target, condition)
    case _ => command
  }

  /** The policy of a table, if this session has it. */
  def policyOf(table: TahoeFileIndex): Option[Policy] = policyOf(table.metadata)

  private def policyOf(table: Metadata): Option[Policy] =
    Try(TableProperties.policyOf(table.configuration)).toOption.flatten

  /** Tells the transaction of an UPDATE or DELETE what it does, unless it marks rows in deletion
    * vectors: those are written before the first call of `writeFiles`.
    */
  private[transaction] def tell(
      transaction: OptimisticTransaction,
      op: DeltaOperations.Operation,
      marksRows: Boolean
  ): Boolean = {
    transaction match {
      case policed: InterlockTransaction if !marksRows =>
        policed.changes(Unwritten(op, changesData = true))
      case _ =>
    }
    marksRows
  }
}

/** An UPDATE; the parameters are those of Delta's command. */
final class PolicedUpdate(
    index: TahoeFileIndex,
    catalogTable: Option[CatalogTable],
    of: LogicalPlan,
    values: Seq[Expression],
    where: Option[Expression]
) extends UpdateCommand(index, catalogTable, of, values, where) {
  override protected def logName: String = classOf[UpdateCommand].getName

  override def shouldWritePersistentDeletionVectors(
      spark: SparkSession,
      transaction: OptimisticTransaction
  ): Boolean = PolicedCommands.tell(
    transaction,
    DeltaOperations.Update(where),
    super.shouldWritePersistentDeletionVectors(spark, transaction)
  )
}

/** A DELETE; the parameters are those of Delta's command. */
final class PolicedDelete(
    log: DeltaLog,
    catalogTable: Option[CatalogTable],
    from: LogicalPlan,
    where: Option[Expression]
) extends DeleteCommand(log, catalogTable, from, where) {
  override protected def logName: String = classOf[DeleteCommand].getName

  override def shouldWritePersistentDeletionVectors(
      spark: SparkSession,
      transaction: OptimisticTransaction
  ): Boolean = PolicedCommands.tell(
    transaction,
    DeltaOperations.Delete(where.toSeq),
    super.shouldWritePersistentDeletionVectors(spark, transaction)
  )
}
