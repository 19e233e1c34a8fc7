package io.interlock.spark.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.internal.VariableSubstitution
import org.apache.spark.sql.types.{DataType, StructType}

/** Adds Interlock's statements to a parser. Text that the parser accepts is never changed. */
final class InterlockParser(session: SparkSession, protected val delegate: ParserInterface)
    extends BindingParser {

  override def parsePlan(sql: String): LogicalPlan = Block.inBlock(session) {
    try delegate.parsePlan(sql)
    catch {
      case refused: ParseException =>
        val text = new VariableSubstitution().substitute(sql)
        ShowHistory.parse(delegate, text)
          .orElse(CompactText.parse(delegate, text))
          .orElse(BlockText.parse(delegate, text))
          .orElse(new TemporalText(text, delegate).plan)
          .getOrElse(throw refused)
    }
  }

  override def parseExpression(sql: String): Expression = delegate.parseExpression(sql)
  override def parseTableIdentifier(sql: String): TableIdentifier =
    delegate.parseTableIdentifier(sql)
  override def parseFunctionIdentifier(sql: String): FunctionIdentifier =
    delegate.parseFunctionIdentifier(sql)
  override def parseMultipartIdentifier(sql: String): Seq[String] =
    delegate.parseMultipartIdentifier(sql)
  override def parseQuery(sql: String): LogicalPlan = delegate.parseQuery(sql)
  override def parseRoutineParam(sql: String): StructType = delegate.parseRoutineParam(sql)
  override def parseTableSchema(sql: String): StructType = delegate.parseTableSchema(sql)
  override def parseDataType(sql: String): DataType = delegate.parseDataType(sql)
}
