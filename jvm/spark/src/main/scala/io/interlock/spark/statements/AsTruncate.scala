package io.interlock.spark.statements

import scala.util.{Failure, Success, Try}

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.analysis.{UnresolvedPartitionSpec, UnresolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TruncatePartition, TruncateTable}
import org.apache.spark.sql.execution.command.ExplainCommand

/** Lets Spark's parser read the table and the partition of a statement that it does not know. */
private[spark] object AsTruncate {

  /** @param truncate
    *   the statement's text with TRUNCATE TABLE in place of its own words; after EXPLAIN if the
    *   statement has it
    */
  def parse(
      parser: ParserInterface,
      truncate: String,
      name: String,
      refused: => InterlockException
  )(statement: (LogicalPlan, TablePartitionSpec) => LogicalPlan): LogicalPlan = {
    def named(child: LogicalPlan): LogicalPlan = child.transform { case table: UnresolvedTable =>
      table.copy(commandName = name)
    }
    def replaced(plan: LogicalPlan): LogicalPlan = plan match {
      case TruncateTable(child) => statement(named(child), Map.empty)
      case TruncatePartition(child, UnresolvedPartitionSpec(values, _)) =>
        statement(named(child), values)
      case ExplainCommand(explained, mode) => ExplainCommand(replaced(explained), mode)
      case _ => throw refused
    }
    Try(parser.parsePlan(truncate)) match {
      case Success(plan) => replaced(plan)
      case Failure(_: ParseException) => throw refused
      case Failure(other) => throw other
    }
  }
}
