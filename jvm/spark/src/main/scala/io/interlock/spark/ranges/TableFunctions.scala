package io.interlock.spark.ranges

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.{
  RelationTimeTravel,
  UnresolvedLeafNode,
  UnresolvedRelation
}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.{AnalysisException, SparkSessionExtensions}

/** What a function stands for, until Spark's rules for relations come round again: those that are
  * left in this round would refuse a path.
  */
final case class TableFunction(relation: LogicalPlan) extends UnresolvedLeafNode

/** The functions that stand for a table at a version, or for what changed in it since one.
  *
  * {{{
  * table_between_versions('db.t', a, b)     db.t VERSION BETWEEN a AND b
  * table_between_timestamps('db.t', a, b)   db.t TIMESTAMP BETWEEN a AND b
  * table_at_version('db.t', v)              db.t VERSION AS OF v
  * }}}
  *
  * All arguments are constant expressions; they are evaluated when a query is analysed.
  */
object TableFunctions {
  val BetweenVersions = "table_between_versions"
  val BetweenTimestamps = "table_between_timestamps"
  val AtVersion = "table_at_version"

  def register(extensions: SparkSessionExtensions): Unit = {
    inject(extensions, BetweenVersions, 3)(between(_, Constants.version))
    inject(extensions, BetweenTimestamps, 3)(between(_, Constants.time))
    inject(extensions, AtVersion, 2) { arguments =>
      val version = Constants.version("the version", arguments(1)).id
      RelationTimeTravel(table(arguments), None, Some(version.toString))
    }
  }

  private def between(
      arguments: Seq[Expression],
      point: (String, Expression) => Point
  ): LogicalPlan =
    TableRange(
      table(arguments),
      point("the begin of the range", arguments(1)),
      Some(point("the end of the range", arguments(2)))
    )

  private def table(arguments: Seq[Expression]): UnresolvedRelation = {
    val name = Constants.text("the table", arguments.head)
    UnresolvedRelation(CatalystSqlParser.parseMultipartIdentifier(name))
  }

  private def inject(extensions: SparkSessionExtensions, name: String, count: Int)(
      build: Seq[Expression] => LogicalPlan
  ): Unit = {
    def checked(arguments: Seq[Expression]): LogicalPlan =
      if (arguments.size == count) TableFunction(build(arguments))
      else throw wrongCount(name, count, arguments.size)
    val info = new ExpressionInfo(getClass.getName, name)
    extensions.injectTableFunction((FunctionIdentifier(name), info, checked))
  }

  private def wrongCount(name: String, expected: Int, found: Int) = new AnalysisException(
    "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
    Map(
      "functionName" -> s"`$name`",
      "expectedNum" -> expected.toString,
      "actualNum" -> found.toString,
      "docroot" -> "https://spark.apache.org/docs/latest"
    )
  )
}
