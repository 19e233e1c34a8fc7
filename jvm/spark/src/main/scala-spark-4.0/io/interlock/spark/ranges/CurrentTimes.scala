package io.interlock.spark.ranges

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, TimeZoneAwareExpression}
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime
import org.apache.spark.sql.catalyst.plans.logical.{OneRowRelation, Project}
import org.apache.spark.sql.internal.SQLConf

/** Spark 4.0 evaluates current_timestamp() and the like only after its optimizer has replaced them. */
private[ranges] object CurrentTimes {
  def evaluable(expression: Expression): Expression = {
    val zoned = expression.transform {
      case found: TimeZoneAwareExpression if found.timeZoneId.isEmpty =>
        found.withTimeZone(SQLConf.get.sessionLocalTimeZone)
    }
    ComputeCurrentTime(Project(Seq(Alias(zoned, "value")()), OneRowRelation())).expressions
      .collectFirst { case Alias(value, _) => value }
      .getOrElse(expression)
  }
}
