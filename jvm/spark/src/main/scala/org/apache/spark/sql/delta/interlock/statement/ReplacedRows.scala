package org.apache.spark.sql.delta.interlock.statement

import io.interlock.spark.predicates.Pinned
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{And, Exists, Expression}
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.interlock.judging.MatchedReads
import org.apache.spark.sql.execution.LogicalRDD

/** What an overwrite by `replaceUsing` or `replaceOn` reads of its table: the rows that match its
  * source. Delta finds them by EXISTS with the source, which it has materialised.
  */
private[statement] object ReplacedRows {

  /** @param filters
    *   those of the scan by which Delta selects files
    * @return
    *   none for another statement, or if the source may have other rows when it is read again
    */
  def of(session: SparkSession, filters: Seq[Expression]): Option[MatchedReads] = filters match {
    // Twice if its columns are partition columns.
    case Seq(exists: Exists, others @ _*) if others.forall(_.semanticEquals(exists)) =>
      val table = LocalRelation(exists.outerAttrs.flatMap(_.references).distinct)
      PullupCorrelatedPredicates(Filter(exists, table)) match {
        case Filter(Exists(source, _, _, on, _), _) if Pinned(source)(_.isInstanceOf[LogicalRDD]) =>
          on.reduceOption(And).map(new MatchedReads(castToImpl(session), source, table, _))
        case _ => None
      }
    case _ => None
  }
}
