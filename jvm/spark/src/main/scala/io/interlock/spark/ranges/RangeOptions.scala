package io.interlock.spark.ranges

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap

/** The options of a DataFrame reader, or of SQL's `t WITH (...)`, that ask for a range:
  * `afterVersion` with `untilVersion`, or `afterTimestamp` with `untilTimestamp`. Without the
  * `until...` option a range ends with the latest version.
  */
final case class RangeOptions(
    after: Point,
    until: Option[Point],
    others: Map[String, String]
)

object RangeOptions {
  private val Versions = Seq("afterVersion", "untilVersion")
  private val Timestamps = Seq("afterTimestamp", "untilTimestamp")
  private val OfOtherReads = Seq("versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData")

  /** None if no range is asked for.
    *
    * @param isStreaming
    *   whether a stream is read, which has no ranges
    * @throws InterlockException
    *   INTERLOCK_RANGE_OPTIONS if the options cannot be combined; INTERLOCK_INVALID_ARGUMENT
    */
  def of(options: Map[String, String], isStreaming: Boolean): Option[RangeOptions] = {
    val all = CaseInsensitiveMap(options)
    val ours = (Versions ++ Timestamps).filter(all.contains)
    val found =
      ours ++ OfOtherReads.filter(all.contains) ++ Option.when(isStreaming)("readStream")
    def point(key: String): Option[Point] =
      all.get(key).map(if (Versions.contains(key)) version(key, _) else time(key, _))
    Option.when(ours.nonEmpty) {
      Seq(Versions, Timestamps).find(keys => found == keys || found == keys.take(1)) match {
        case Some(keys) => RangeOptions(point(keys.head).get, point(keys.last), all -- ours)
        case None => throw InterlockException(
            "INTERLOCK_RANGE_OPTIONS",
            "options" -> found.mkString(", ")
          )
      }
    }
  }

  private def version(key: String, value: String): Point =
    value.toLongOption.map(Point.Version(_))
      .getOrElse(throw InterlockException.invalidArgument(key, s"'$value'", "an integer"))

  private def time(key: String, value: String): Point = FunctionArguments.time(key, Literal(value))
}
