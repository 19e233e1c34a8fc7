package io.interlock.spark.ranges

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{
  RelationTimeTravel,
  UnresolvedLeafNode,
  UnresolvedRelation
}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.TimestampType

/** What a function stands for, until Spark's rules for relations come round again: those that are
  * left in this round would refuse a path.
  */
final case class TableFunction(relation: LogicalPlan) extends UnresolvedLeafNode

/** The functions that stand for a table at a version, or for what changed in it since one.
  *
  * {{{
  * table_between_versions('db.t', a, b)     db.t VERSION BETWEEN a AND b
  * table_between_timestamps('db.t', a, b)   db.t TIMESTAMP BETWEEN a AND b
  * table_between_versions('db.t', a)        as far as the latest version; so with timestamps
  * table_at_version('db.t', v)              db.t VERSION AS OF v
  * table_at_timestamp('db.t', v)            db.t TIMESTAMP AS OF v
  * }}}
  *
  * All arguments are constant expressions; they are evaluated when a query is analysed.
  */
object TableFunctions {
  val BetweenVersions = "table_between_versions"
  val BetweenTimestamps = "table_between_timestamps"
  val AtVersion = "table_at_version"
  val AtTimestamp = "table_at_timestamp"

  def register(extensions: SparkSessionExtensions): Unit = {
    inject(extensions, BetweenVersions, 2 to 3)(between(_, FunctionArguments.version))
    inject(extensions, BetweenTimestamps, 2 to 3)(between(_, FunctionArguments.time))
    inject(extensions, AtVersion, 2 to 2) { arguments =>
      val version = FunctionArguments.version("the version", arguments(1)).id
      RelationTimeTravel(table(arguments), None, Some(version.toString))
    }
    inject(extensions, AtTimestamp, 2 to 2) { arguments =>
      val time = FunctionArguments.time("the timestamp", arguments(1)).micros
      RelationTimeTravel(table(arguments), Some(Literal(time, TimestampType)), None)
    }
  }

  private def between(
      arguments: Seq[Expression],
      point: (String, Expression) => Point
  ): LogicalPlan =
    TableRange(
      table(arguments),
      point("the begin of the range", arguments(1)),
      arguments.lift(2).map(point("the end of the range", _))
    )

  private def table(arguments: Seq[Expression]): UnresolvedRelation = {
    val name = FunctionArguments.text("the table", arguments.head)
    UnresolvedRelation(CatalystSqlParser.parseMultipartIdentifier(name))
  }

  private def inject(extensions: SparkSessionExtensions, name: String, counts: Range)(
      build: Seq[Expression] => LogicalPlan
  ): Unit = {
    def checked(arguments: Seq[Expression]): LogicalPlan =
      if (counts.contains(arguments.size)) TableFunction(build(arguments))
      else
        throw FunctionArguments.wrongCount(name, counts.distinct.mkString(" or "), arguments.size)
    val info = new ExpressionInfo(getClass.getName, name)
    extensions.injectTableFunction((FunctionIdentifier(name), info, checked))
  }
}
