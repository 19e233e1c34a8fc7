package org.apache.spark.sql.delta.interlock.judging

import io.interlock.spark.predicates.Decidable
import io.interlock.spark.properties.Setting
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSource.MergeSource
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSourceReason.NOT_MATERIALIZED_AUTO
import org.apache.spark.sql.delta.{DataFrameUtils, DeltaTableReadPredicate}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/** What a statement reads of its table by comparing it with a source: the rows that a condition
  * matches with a row of the source.
  *
  * A MERGE reads its table in this way, and so does an INSERT of those source rows that the table
  * does not have yet. What such a statement does with a source row depends only on the table's rows
  * that match it: if there is none, the source row is inserted. A row of the table that matches no
  * source row has no influence on the result, so it does not count as read.
  *
  * @param source
  *   the source as the statement saw it
  * @param target
  *   the table in the statement's plan: with projections, if it is a view or a subquery
  * @param on
  *   the condition, on columns of both
  * @param othersRead
  *   a predicate on the target of rows that are read whether they match or not
  * @param isPinned
  *   whether the source has the same rows when it is read again
  */
final class MatchedReads(
    session: classic.SparkSession,
    source: LogicalPlan,
    target: LogicalPlan,
    on: Expression,
    othersRead: Option[Expression] = None,
    isPinned: => Boolean = true
) extends AliasHelper {
  private val onColumns = onTable(on)
  private val condition = Decidable.replaced(onColumns)
  private val isOfTarget: Attribute => Boolean = !source.outputSet.contains(_)
  private val sourceColumns = source.output.filter(condition.references.contains)

  /** The columns of the target that the condition names. */
  val targetColumns: Seq[Attribute] = condition.references.toSeq.filter(isOfTarget)

  /** The predicate of the rows that WHEN NOT MATCHED BY SOURCE clauses select. */
  val bySourceOnly: Option[Expression] = othersRead.map(onTable)

  /** The condition, as SQL. */
  def sql: String = on.sql

  /** What cannot be decided for rows that another job changed, as text. */
  def undecidable: Option[String] =
    (onColumns +: bySourceOnly.toSeq).find(!Decidable(_)).map(_.sql).orElse(
      Option.when(!isPinned)(s"$sql, whose source may have other rows when it is read again,")
    )

  /** An expression on the target as one on the table: the target can be a view, whose columns have
    * other names and values.
    */
  private def onTable(expression: Expression): Expression = target
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
        Join(rows, source, Inner, Some(on), JoinHint.NONE) -> struct
    }

  /** Whether rows can be compared without a Spark job. Reads the source the first time. */
  def isInMemory: Boolean = inMemory.nonEmpty

  private def struct = CreateNamedStruct(
    sourceColumns.flatMap(column => Seq(Literal(column.name), column))
  )

  /** The source, as far as the condition names it, if it is small. It is read once, when the
    * statement is first compared with a winner.
    */
  private lazy val inMemory: Option[SourceRows] = {
    val own = StrictSession.of(session)
    val most = Setting.MaxSourceRows.in(own.conf.getOption(_))
      .getOrElse(MatchedReads.MaxSourceRows).min(Int.MaxValue - 1)
    val columns = Limit(Literal(most + 1), Project(sourceColumns, source))
    val query = DataFrameUtils.ofRows(own, columns).queryExecution
    val rows = JudgingJob.run(own)(query.executedPlan.executeCollect())
    Option.when(rows.length <= most)(
      new SourceRows(targetColumns, sourceColumns, condition, rows)
    ).filter(_.mostPerKey <= MatchedReads.MostCompared)
  }
}

private[interlock] object MatchedReads {

  /** The maximum number of source rows that each row of the target is compared with. */
  private val MostCompared = 1000

  /** Unless the session has [[Setting.MaxSourceRows]]. */
  private val MaxSourceRows = 100000

  /** What a MERGE reads: the rows that ON matches with a row of the source, and those that its WHEN
    * NOT MATCHED BY SOURCE clauses select. Conditions in WHEN [NOT] MATCHED are left out: a row that
    * matches a source row counts even if nothing would be done with it.
    */
  def of(merge: MergeIntoCommand, source: MergeSource): MatchedReads = {
    val session = source.df.sparkSession.asInstanceOf[classic.SparkSession]
    val plan = source.df.queryExecution.analyzed
    // A cache that another job has filled meanwhile may hold a later version of the source's tables.
    def isCached = DataFrameUtils.ofRows(session, plan).queryExecution.withCachedData
      .collectWithSubqueries { case cached: InMemoryRelation => cached }.nonEmpty
    new MatchedReads(
      session,
      plan,
      merge.target,
      merge.condition,
      merge.notMatchedBySourceClauses
        .map(_.condition.getOrElse(Literal.TrueLiteral))
        .reduceOption(Or),
      source.isMaterialized || source.materializeReason == NOT_MATERIALIZED_AUTO && !isCached
    )
  }
}

/** A scan by which a statement has read its table, of which only matching rows count. */
final private[interlock] case class MatchedScan(
    predicate: DeltaTableReadPredicate,
    reads: MatchedReads
)
