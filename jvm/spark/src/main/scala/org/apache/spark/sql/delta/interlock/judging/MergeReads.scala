package org.apache.spark.sql.delta.interlock.judging

import io.interlock.spark.predicates.Decidable
import io.interlock.spark.properties.JudgingSettings
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSource.MergeSource
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSourceReason.NOT_MATERIALIZED_AUTO
import org.apache.spark.sql.delta.{DataFrameUtils, DeltaTableReadPredicate}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/** What a MERGE reads of its table: the rows that its condition matches with a row of the source, and
  * those that its WHEN NOT MATCHED BY SOURCE clauses select.
  *
  * What becomes of a source row depends only on the target's rows that match it: it is inserted if
  * there is none. So a row of the target that matches no row of the source changes nothing that the
  * MERGE does. Conditions in WHEN [NOT] MATCHED are left out: a row that matches a source row counts
  * even if nothing would be done with it.
  *
  * @param source
  *   the source as the statement saw it
  */
final private[interlock] class MergeReads(merge: MergeIntoCommand, source: MergeSource)
    extends AliasHelper {
  private val session = source.df.sparkSession.asInstanceOf[classic.SparkSession]
  private val settings = JudgingSettings.of(session.conf.getOption)
  private val plan = source.df.queryExecution.analyzed
  private val on = onTable(merge.condition)
  private val condition = Decidable.replaced(on)
  private val isOfTarget: Attribute => Boolean = !plan.outputSet.contains(_)
  private val sourceColumns = plan.output.filter(condition.references.contains)

  /** The columns of the target that the condition names. */
  val targetColumns: Seq[Attribute] = condition.references.toSeq.filter(isOfTarget)

  /** The condition, as SQL. */
  def sql: String = merge.condition.sql

  /** What cannot be decided for rows that another job changed, as text. */
  def undecidable: Option[String] =
    (on +: bySourceOnly.toSeq).find(!Decidable(_)).map(_.sql).orElse(
      Option.when(!source.isMaterialized && !isPinned)(
        s"$sql, whose source may have other rows when it is read again,"
      )
    )

  /** Whether a source that is not materialised has the same rows again. A cache that another job has
    * filled meanwhile may hold a later version of the source's tables.
    */
  private def isPinned: Boolean = source.materializeReason == NOT_MATERIALIZED_AUTO &&
    DataFrameUtils.ofRows(session, plan).queryExecution.withCachedData
      .collectWithSubqueries { case cached: InMemoryRelation => cached }.isEmpty

  /** The predicate of the rows that WHEN NOT MATCHED BY SOURCE clauses select. */
  val bySourceOnly: Option[Expression] = merge.notMatchedBySourceClauses
    .map(_.condition.fold[Expression](Literal.TrueLiteral)(onTable))
    .reduceOption(Or)

  /** An expression on the target as one on the table: the target can be a view, whose columns have
    * other names and values.
    */
  private def onTable(expression: Expression): Expression = merge.target
    .collect { case view: Project => getAliasMap(view) }
    .foldLeft(expression)(replaceAlias)

  /** Rows that match a row of the source.
    *
    * @param rows
    *   rows of the target
    * @param named
    *   resolves an expression on the target's columns in `rows`
    * @return
    *   these rows, and an expression on them for a row of the source that matches, as a struct
    */
  def matching(rows: LogicalPlan, named: Expression => Expression): (LogicalPlan, Expression) =
    inMemory match {
      case Some(few) =>
        val found = MatchingSourceRow(targetColumns.map(named), few, struct.dataType)
        Filter(IsNotNull(found), rows) -> found
      case None =>
        val on =
          condition.transform { case column: Attribute if isOfTarget(column) => named(column) }
        Join(rows, plan, Inner, Some(on), JoinHint.NONE) -> struct
    }

  /** Whether rows can be compared without a Spark job. Reads the source the first time. */
  def isInMemory: Boolean = inMemory.nonEmpty

  private def struct = CreateNamedStruct(
    sourceColumns.flatMap(column => Seq(Literal(column.name), column))
  )

  /** The source, as far as the condition names it, if it is small. It is read once, when the MERGE
    * meets the first winner.
    */
  private lazy val inMemory: Option[SourceRows] = {
    val most = settings.maxSourceRows.min(Int.MaxValue - 1)
    val columns = Limit(Literal(most + 1), Project(sourceColumns, plan))
    val query = DataFrameUtils.ofRows(session, columns).queryExecution
    val rows = JudgingJob.run(session)(query.executedPlan.executeCollect())
    Option.when(rows.length <= most)(
      new SourceRows(targetColumns, sourceColumns, condition, rows)
    ).filter(_.mostPerKey <= MergeReads.MostCompared)
  }
}

private[interlock] object MergeReads {

  /** The maximum number of source rows that each row of the target is compared with. */
  private val MostCompared = 1000
}

/** The scan by which a MERGE has read its table. */
final private[interlock] case class MergeScan(predicate: DeltaTableReadPredicate, reads: MergeReads)
