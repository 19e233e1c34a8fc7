package io.interlock.spark.statements

import scala.util.Try

import io.interlock.spark.claims.StreamThread
import io.interlock.spark.errors.MadeMeanwhile
import io.interlock.spark.properties.TablePolicy
import io.interlock.spark.statements.Runs.isDeterministic
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.connector.write.{V1Write, Write}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands._
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.delta.interlock.statement.PlanReads
import org.apache.spark.sql.delta.sources.DeltaDataSource
import org.apache.spark.sql.delta.{DeltaDynamicPartitionOverwriteCommand, DeltaLog, DeltaOptions}
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.types.StructType

/** Lets a write run again if it loses (see [[Rerun]]): UPDATE, DELETE, MERGE, INSERT, REPLACE TABLE AS
  * SELECT, CREATE TABLE IF NOT EXISTS AS SELECT and writes of DataFrames, if the table has a policy and
  * the statement would do the same on the same data; RESTORE always. Writes of a streaming query, in
  * foreachBatch too, are left to its own recovery. In an atomic block a write runs once, and the block
  * gets to know if it fails.
  *
  * A strategy of the planner, because the plan of a write has its `V1Write` only after all rules of the
  * optimizer that can be injected.
  */
private[spark] class RerunStrategy(session: SparkSession) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    val again = rewritten(plan)
    if (again eq plan) Nil else castToImpl(session).sessionState.planner.plan(again).toSeq
  }

  private def rewritten(plan: LogicalPlan): LogicalPlan =
    plan match {
      case update: UpdateCommand => command(update, update.tahoeFileIndex.deltaLog)
      case delete: DeleteCommand => command(delete, delete.deltaLog)
      case merge: MergeIntoCommand => command(merge, merge.targetFileIndex.deltaLog)
      case dynamic: DeltaDynamicPartitionOverwriteCommand =>
        command(dynamic, dynamic.deltaTable.deltaLog)
      case save @ SaveIntoDataSourceCommand(_, _: DeltaDataSource, options, _) =>
        val log = options.get("path")
          .flatMap(path => Try(DeltaLog.forTable(session, new Path(path), options)).toOption)
        log.fold(plan)(command(save, _))
      case restore: RestoreTableCommand => restoring(restore)
      case create: CreateTableAsSelect if create.ignoreIfExists => replacing(create)
      case replace: ReplaceTableAsSelect => replacing(replace)
      case insert: AppendData =>
        again(insert.write, insert).fold(plan)(write => insert.copy(write = Some(write)))
      case overwrite: OverwriteByExpression =>
        again(overwrite.write, overwrite)
          .fold(plan)(write => overwrite.copy(write = Some(write)))
      case _ => plan
    }

  private def command(command: RunnableCommand, log: DeltaLog): LogicalPlan = {
    val runs = severalOf(log, command.productIterator.toSeq)
    runs.fold[LogicalPlan](command)(RerunCommand(command, _))
  }

  /** It writes no data files, and any commit makes it lose. From the second run on they wait for it.
    */
  private def restoring(restore: RestoreTableCommand): LogicalPlan = {
    val log = restore.sourceTable.deltaLog
    val most = runsOf(log).most.max(RerunStrategy.LeastOfRestore)
    val isOurs = isPoliced(log.unsafeVolatileSnapshot.metadata)
    if (isOurs && !isInStream) RerunCommand(restore, replacements(most)) else restore
  }

  private def replacing(statement: V2CreateTableAsSelectPlan): LogicalPlan = statement.name match {
    case ResolvedIdentifier(catalog: TableCatalog, identifier)
        if statement.getTagValue(RerunStrategy.IsRerun).isEmpty &&
          isDeterministic(statement.query) =>
      def logOf(found: Option[Table]) =
        found.collect { case table: DeltaTableV2 if table.tableExists => table.deltaLog }
      val runs = logOf(Try(catalog.loadTable(identifier)).toOption) match {
        case Some(there) if mayRead(statement.query, there) || replacesRows(statement) =>
          runsOf(there)
        case Some(there) => replacements(runsOf(there).most)
        // If another job makes the table meanwhile, it may have a policy then.
        case None =>
          def isPolicedNow = logOf(MadeMeanwhile.table(catalog, identifier))
            .exists(there => isPoliced(there.update().metadata))
          replacements(mostRuns(Map.empty)).copy(areAsPlanned = () => isPolicedNow)
      }
      if (runs.most == 1) statement
      else {
        statement.setTagValue(RerunStrategy.IsRerun, ())
        RerunReplace(statement, runs)
      }
    case _ => statement
  }

  /** Whether it is a `saveAsTable` that keeps the table and replaces some of its rows. */
  private def replacesRows(statement: V2CreateTableAsSelectPlan) = statement match {
    case replace: ReplaceTableAsSelect =>
      val options = CaseInsensitiveMap(replace.writeOptions)
      options.contains(DeltaOptions.REPLACE_WHERE_OPTION) ||
      options.get(DeltaOptions.PARTITION_OVERWRITE_MODE_OPTION).exists(
        _.equalsIgnoreCase("dynamic")
      )
    case _ => false
  }

  /** Whether a query may read a table, whose columns it then knows from when it was planned. */
  private def mayRead(query: LogicalPlan, log: DeltaLog): Boolean =
    query.collectWithSubqueries { case leaf if leaf.children.isEmpty => leaf }.exists {
      case _: LocalRelation | _: OneRowRelation | _: Range => false
      case PlanReads.Scan(other) => other.deltaLog.isSameLogAs(log)
      case _ => true
    }

  private def again(write: Option[Write], insert: V2WriteCommand): Option[Write] =
    (write, insert.table) match {
      case (Some(write: V1Write), relation: DataSourceV2Relation)
          if !write.isInstanceOf[RerunWrite] =>
        Some(relation.table)
          .collect { case table: DeltaTableV2 => table.deltaLog }
          .flatMap(severalOf(_, Seq(insert.query)))
          .map(new RerunWrite(write, _))
      case _ => None
    }

  /** None for a write that runs once, outside of a block.
    *
    * @param parts
    *   of the statement
    */
  private def severalOf(log: DeltaLog, parts: Seq[Any]): Option[Runs] = {
    val runs = runsOf(log)
    if (runs.most > 1 && isDeterministic(parts)) Some(runs)
    else Option.when(Block.of(session).nonEmpty)(runs.copy(most = 1))
  }

  private def runsOf(log: DeltaLog): Runs = {
    val planned = log.unsafeVolatileSnapshot.metadata
    Runs(
      if (isPoliced(planned)) mostRuns(planned.configuration) else 1,
      () => shape(log.update().metadata) == shape(planned)
    )
  }

  private def replacements(most: Int) = Runs(most, () => true, replaceTable = true)

  private def mostRuns(properties: Map[String, String]) =
    if (isInStream) 1 else Runs.most(session, properties)

  private def isInStream = StreamThread.isCurrent(session.sparkContext)

  private def isPoliced(table: Metadata) = TablePolicy.named(table.configuration).nonEmpty

  private def shape(table: Metadata): (String, StructType, Seq[String]) =
    (table.id, table.schema, table.partitionColumns)
}

private object RerunStrategy {
  private val LeastOfRestore = 5

  /** Marks a statement that runs within a [[RerunReplace]]. */
  private val IsRerun = TreeNodeTag[Unit]("interlock.isRerun")
}
