package io.interlock.spark.statements

import io.interlock.spark.predicates.Pinned
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftOuter, LeftSemi}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.interlock.judging.MatchedReads
import org.apache.spark.sql.delta.interlock.statement.InterlockTransaction
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Reports to a transaction the scans of its table that a query only joins with a source, as an
  * INSERT of what is absent does: rows that match no row of the source do not change the result.
  *
  * This rule runs after Delta's, which has replaced each scan by one of a fixed snapshot, and before
  * Spark makes joins of EXISTS. A source that may have other rows when it is read again is not
  * accepted; then the scan counts with all its rows.
  */
final class JoinsInTransaction(session: SparkSession) extends Rule[LogicalPlan]
    with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    OptimisticTransaction.getActive().foreach {
      case transaction: InterlockTransaction =>
        val scans = plan.collectWithSubqueries { case Scan(_, scan) => scan }
        val joins = joinsOf(plan).flatMap(readsOf)
        for ((scan, reads) <- joins)
          // Delta makes one scan of several that select the same files.
          if (scans.count(_ eq scan) == joins.count(_._1 eq scan))
            transaction.reads.scanIsFor(scan, reads)
      case _ =>
    }
    plan
  }

  /** A join: source, target and condition. */
  private type Joined = (LogicalPlan, LogicalPlan, Expression)

  private def joinsOf(plan: LogicalPlan): Seq[Joined] = plan.collectWithSubqueries {
    case Join(source, target, LeftAnti | LeftSemi | LeftOuter, Some(on), _) =>
      Seq((source, target, on))
    case Filter(condition, child) =>
      val (queries, others) =
        splitConjunctivePredicates(condition).partition(SubqueryExpression.hasSubquery)
      val source = others.reduceOption(And).fold(child)(Filter(_, child))
      queries.flatMap(_.collect { case Exists(target, _, _, on, _) =>
        on.reduceOption(And).map((source, target, _))
      }.flatten)
  }.flatten

  private def readsOf(join: Joined): Option[(DeltaScan, MatchedReads)] = join match {
    case (source, target @ Rows(Scan(table, scan)), on)
        if Pinned(source)(Scan.unapply(_).nonEmpty) &&
          source.outputSet.intersect(table.outputSet).isEmpty =>
      Some(scan -> new MatchedReads(castToImpl(session), source, target, on))
    case _ => None
  }

  private object Scan {
    def unapply(plan: LogicalPlan): Option[(LogicalRelation, DeltaScan)] = plan match {
      case table @ LogicalRelation(
            HadoopFsRelation(files: PreparedDeltaFileIndex, _, _, _, _, _),
            _,
            _,
            _,
            _
          ) => Some(table -> files.preparedScan)
      case _ => None
    }
  }

  /** The relation of which a plan selects rows and columns. */
  private object Rows {
    def unapply(plan: LogicalPlan): Some[LogicalPlan] = plan match {
      case Project(_, Rows(table)) => Some(table)
      case Filter(_, Rows(table)) => Some(table)
      case table => Some(table)
    }
  }
}
