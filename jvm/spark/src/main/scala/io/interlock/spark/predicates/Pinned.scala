package io.interlock.spark.predicates

import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils

/** Plans that give the same rows when they run again. */
object Pinned {

  /** @param isPinned
    *   whether a table that the plan reads has the same rows then
    */
  def apply(plan: LogicalPlan)(isPinned: LogicalPlan => Boolean): Boolean =
    plan.expressions.forall(Decidable(_)) && plan.children.forall(apply(_)(isPinned)) &&
      (plan match {
        case _: LocalRelation | _: OneRowRelation | _: Range => true
        case _: Project | _: Filter | _: SubqueryAlias | _: Join | _: Union => true
        case aggregate: Aggregate => isOrderless(aggregate)
        case _ => isPinned(plan)
      })

  /** Whether the result does not depend on the order of the rows, as it does for sums of doubles and
    * for which of several texts that are equal stands for a group.
    */
  private def isOrderless(aggregate: Aggregate): Boolean =
    aggregate.output.forall(column => UnsafeRowUtils.isBinaryStable(column.dataType)) &&
      aggregate.aggregateExpressions.flatMap(_.collect { case found: AggregateExpression =>
        found.aggregateFunction
      }).forall {
        case _: Count | _: Min | _: Max => true
        case _ => false
      }
}
