package io.interlock.spark.history

import io.interlock.spark.ranges.FunctionArguments
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.types._
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/** `get_latest_version('t' [, n])` and `get_latest_timestamp('t' [, n])`: the n-th latest ID version
  * and time version of a table, 1 being the latest. They are looked up when a query is analysed.
  */
object LatestFunctions {
  def register(extensions: SparkSessionExtensions): Unit = {
    inject(extensions, "get_latest_version", "latest version", LongType)(LatestVersions.version)
    inject(extensions, "get_latest_timestamp", "latest change of data", TimestampType)(
      LatestVersions.timestamp
    )
  }

  /** @param of
    *   of a session's table, counted from 1
    */
  private def inject(
      extensions: SparkSessionExtensions,
      name: String,
      what: String,
      dataType: DataType
  )(of: (SparkSession, String, Int) => Long): Unit = {
    def build(arguments: Seq[Expression]): Expression = {
      if (arguments.isEmpty || arguments.size > 2)
        throw FunctionArguments.wrongCount(name, "[1, 2]", arguments.size)
      val table = FunctionArguments.text("the table", arguments.head)
      val n = arguments.lift(1).fold(1)(FunctionArguments.count("n", _))
      val call = arguments.map(toPrettySQL(_)).mkString(s"$name(", ", ", ")")
      LookedUp(call, of(SparkSession.active, table, n), dataType)
    }
    val usage = s"_FUNC_(table[, n]) - The $what of a table, or the n-th latest; n is 1 or more."
    val info = new ExpressionInfo(getClass.getName, null, name, usage, "")
    extensions.injectFunction((FunctionIdentifier(name), info, build))
  }
}

/** A value that was looked up during analysis. Unlike a literal it keeps the name of its call, which
  * columns of views are known by.
  */
final private case class LookedUp(call: String, value: Any, dataType: DataType)
    extends LeafExpression
    with CodegenFallback {
  override def foldable: Boolean = true
  override def nullable: Boolean = false
  override def eval(input: InternalRow): Any = value
  override def sql: String = call
  override def toString: String = call
}
