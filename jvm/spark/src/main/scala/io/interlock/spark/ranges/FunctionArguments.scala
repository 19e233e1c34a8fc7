package io.interlock.spark.ranges

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, RuntimeReplaceable}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** Evaluates the arguments of functions: constant expressions.
  *
  * @throws InterlockException
  *   INTERLOCK_INVALID_ARGUMENT, if an argument is not constant, is NULL or has another type; the
  *   parameter `what` names it in the message
  */
private[spark] object FunctionArguments {

  def text(what: String, expression: Expression): String =
    value[Any](what, "a constant string", expression, StringType, _.isInstanceOf[StringType])
      .toString

  def version(what: String, expression: Expression): Point.Version =
    Point.Version(value[Long](what, "a constant integer", expression, LongType, isInteger))

  /** A number from 1 on. */
  def count(what: String, expression: Expression): Int = {
    val expected = "a constant integer from 1 on"
    val found = value[Long](what, expected, expression, LongType, isInteger)
    if (found < 1 || found > Int.MaxValue)
      throw InterlockException.invalidArgument(what, expression.sql, expected)
    found.toInt
  }

  /** What Spark could store in a column of that type, NULL too. */
  def of(what: String, expression: Expression, wanted: DataType): Any = {
    val kind = wanted match {
      case DoubleType => "number"
      case _: MapType => "map of texts to texts"
      case _ => "string"
    }
    def accepts(found: DataType) = Cast.canANSIStoreAssign(found, wanted)
    nullable(what, s"a constant $kind", expression, wanted, accepts)
  }

  /** A time; a string or date is interpreted in the session's time zone. */
  def time(what: String, expression: Expression): Point.Time =
    Point.Time(value[Long](what, "a constant timestamp", expression, TimestampType, isTime))

  private def isInteger(found: DataType): Boolean =
    Seq(ByteType, ShortType, IntegerType, LongType).contains(found)

  private def isTime(found: DataType): Boolean = found match {
    case _: StringType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** @tparam A
    *   what Spark has for a value of the type `wanted`
    */
  private def value[A](
      what: String,
      expected: String,
      expression: Expression,
      wanted: DataType,
      accepts: DataType => Boolean
  ): A = Option(nullable(what, expected, expression, wanted, accepts))
    .getOrElse(throw InterlockException.invalidArgument(what, expression.sql, expected))
    .asInstanceOf[A]

  private def nullable(
      what: String,
      expected: String,
      expression: Expression,
      wanted: DataType,
      accepts: DataType => Boolean
  ): Any = {
    val replaced = expression.transform { case r: RuntimeReplaceable => r.replacement }
    val evaluable = CurrentTimes.evaluable(replaced)
    if (!evaluable.foldable || !accepts(evaluable.dataType))
      throw InterlockException.invalidArgument(what, expression.sql, expected)
    val zone = Some(SQLConf.get.sessionLocalTimeZone)
    Cast(evaluable, wanted, zone, ansiEnabled = false).eval()
  }

  /** Spark's error of a call with too few or too many arguments. */
  def wrongCount(function: String, expected: String, found: Int): AnalysisException =
    new AnalysisException(
      "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
      Map(
        "functionName" -> s"`$function`",
        "expectedNum" -> expected,
        "actualNum" -> found.toString,
        "docroot" -> "https://spark.apache.org/docs/latest"
      )
    )
}
