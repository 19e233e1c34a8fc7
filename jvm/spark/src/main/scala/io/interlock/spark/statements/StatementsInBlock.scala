package io.interlock.spark.statements

import java.util.Locale

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{FakeSystemCatalog, NamedRelation, PersistedView}
import org.apache.spark.sql.catalyst.expressions.{Expression, VariableReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.block.{Block, InBlock}
import org.apache.spark.sql.delta.sources.DeltaDataSource
import org.apache.spark.sql.execution.command.CreateViewCommand
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Refuses, in a session with an open block, statements that a block does not take: what they do could
  * not be taken back. It runs before all other rules, since some statements are run while they are
  * analysed. What a statement does to a Delta table is checked again at its commit. When a statement
  * has failed, it refuses all but ROLLBACK.
  */
final class StatementsInBlock(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    Block.of(session).foreach { block =>
      if (plan != BlockCommand("ROLLBACK")) block.refuseIfFailed()
      Block.inBlock(session)(StatementsInBlock.refuse(plan))
    }
    plan
  }

  /** For the plan as it is analysed, which tells whether a table is Delta's, and whether the block
    * may run again.
    */
  def check(plan: LogicalPlan): Unit = Block.of(session).foreach { block =>
    Block.inBlock(session)(StatementsInBlock.refuse(plan))
    // Within a transaction Delta analyses its own queries, which count their rows as they run.
    if (OptimisticTransaction.getActive().isEmpty && !StatementsInBlock.isRepeatable(plan))
      block.isRepeatable = false
  }
}

private[statements] object StatementsInBlock {

  /** Classes of plans, as they are parsed and as they are analysed. */
  private val taken = Set(
    "InsertIntoStatement",
    "AppendData",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "SaveIntoDataSourceCommand",
    "DeltaDynamicPartitionOverwriteCommand",
    "UpdateTable",
    "DeltaUpdateTable",
    "UpdateCommand",
    "PolicedUpdate",
    "DeleteFromTable",
    "DeltaDelete",
    "DeleteCommand",
    "PolicedDelete",
    "MergeIntoTable",
    "DeltaMergeInto",
    "MergeIntoCommand",
    "PolicedMerge",
    "TruncateTable",
    "TruncatePartition",
    "TruncateStatement",
    "TruncateCommand",
    "SetCommand",
    "SetVariable",
    "CreateVariable",
    "DropVariable",
    "SetCatalogAndNamespace",
    "UseStatement",
    "DropTempViewCommand",
    "ExplainCommand",
    "BlockCommand"
  )

  /** Statements that are no commands for Spark. */
  private val refused = Set("RestoreTableStatement", "CloneTableStatement", "CacheTable", "Call")

  /** @throws io.interlock.spark.errors.InterlockException
    *   INTERLOCK_NOT_IN_BLOCK
    */
  def refuse(plan: LogicalPlan): Unit = plan.foreach(refuseOne)

  private def refuseOne(plan: LogicalPlan): Unit = plan match {
    case view: CreateViewCommand if view.viewType != PersistedView =>
    case write: V2WriteCommand if write.table.resolved && !isDelta(write.table) =>
      throw InBlock.refused(s"A change of ${write.table.name}")
    case save: SaveIntoDataSourceCommand if !save.dataSource.isInstanceOf[DeltaDataSource] =>
      throw InBlock.refused("A change of a table that is no Delta table")
    case _ =>
      val name = plan.getClass.getSimpleName
      val isRead = name.startsWith("Describe") || name.startsWith("Show")
      val isOther =
        plan.isInstanceOf[Command] || plan.isInstanceOf[ParsedStatement] || refused(name)
      if (isOther && !isRead && !taken(name)) throw InBlock.refused(readable(name))
  }

  /** Whether a second run on the same data would do the same. */
  private def isRepeatable(plan: LogicalPlan) = plan match {
    case set: SetVariable if set.targetVariables.exists(isOfSession) => false
    case _ if changeSession(plan.getClass.getSimpleName) => false
    case _ => Runs.isDeterministic(plan) && plan.productIterator.forall(Runs.isDeterministic)
  }

  /** Statements after which those before them may mean something else. */
  private val changeSession =
    Set("CreateViewCommand", "DropTempViewCommand", "SetCatalogAndNamespace", "SetCommand")

  private def isOfSession(variable: Expression) = variable match {
    case reference: VariableReference => reference.catalog == FakeSystemCatalog
    case _ => false
  }

  private def isDelta(target: NamedRelation) = target match {
    case relation: DataSourceV2Relation => relation.table.isInstanceOf[DeltaTableV2]
    case _ => false
  }

  /** The name of a statement from that of its class: `CREATE TABLE` for CreateTable. */
  private def readable(name: String) = name.stripPrefix("Delta").stripSuffix("Command")
    .stripSuffix("Statement").replaceAll("(?<=[a-z])(?=[A-Z])", " ").toUpperCase(Locale.ROOT)
}
