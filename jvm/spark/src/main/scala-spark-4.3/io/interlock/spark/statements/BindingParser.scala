package io.interlock.spark.statements

import org.apache.spark.sql.catalyst.parser._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Delta's parser leaves parameters unbound, so they are put into the text before it sees it. */
private[statements] trait BindingParser extends ParserInterface {
  protected def delegate: ParserInterface

  override def parsePlanWithParameters(sql: String, parameters: ParameterContext): LogicalPlan =
    parsePlan(BoundParameters.in(sql, parameters))

  override def splitStatements(sql: String): SqlStatementSplitResult =
    delegate.splitStatements(sql)
}
