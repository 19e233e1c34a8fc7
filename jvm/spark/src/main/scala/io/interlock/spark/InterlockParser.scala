package io.interlock.spark

import scala.util.Try

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.ranges.TemporalText
import org.apache.spark.sql.catalyst.analysis.{UnresolvedPartitionSpec, UnresolvedTable}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TruncatePartition, TruncateTable}
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.execution.command.ExplainCommand
import org.apache.spark.sql.internal.VariableSubstitution
import org.apache.spark.sql.types.{DataType, StructType}

/** Adds Interlock's statements to a parser. What the parser accepts is never touched.
  *
  * @param delegate
  *   Delta's parser
  */
final class InterlockParser(delegate: ParserInterface) extends ParserInterface {

  override def parsePlan(sql: String): LogicalPlan =
    try delegate.parsePlan(sql)
    catch {
      case refused: ParseException =>
        val text = new VariableSubstitution().substitute(sql)
        ShowHistory.parse(delegate, text)
          .orElse(CompactText.of(text).map(compaction))
          .orElse(new TemporalText(text, delegate).rewritten.map(delegate.parsePlan))
          .getOrElse(throw refused)
    }

  /** Delta's parser leaves parameters unbound, so they are put into the text before it sees it. */
  override def parsePlanWithParameters(sql: String, parameters: ParameterContext): LogicalPlan =
    parsePlan(BoundParameters.in(sql, parameters))

  private def compaction(text: CompactText): LogicalPlan = {
    def statement(plan: LogicalPlan): LogicalPlan = plan match {
      case TruncateTable(child) => CompactStatement(named(child), Map.empty, text.kind)
      case TruncatePartition(child, UnresolvedPartitionSpec(values, _)) =>
        CompactStatement(named(child), values, text.kind)
      case ExplainCommand(explained, mode) => ExplainCommand(statement(explained), mode)
      case _ => throw InterlockException.compactSyntax(text.kind.name)
    }
    def named(child: LogicalPlan): LogicalPlan = child.transform { case table: UnresolvedTable =>
      table.copy(commandName = s"ALTER TABLE ... ${text.kind.name}")
    }
    Try(delegate.parsePlan(text.truncate)).fold(
      {
        case _: ParseException => throw InterlockException.compactSyntax(text.kind.name)
        case other => throw other
      },
      statement
    )
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
