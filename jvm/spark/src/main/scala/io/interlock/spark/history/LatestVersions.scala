package io.interlock.spark.history

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.delta.DeltaHistoryManager

/** Versions of a table, counted from its latest, which is 1. */
object LatestVersions {

  /** @throws InterlockException
    *   INTERLOCK_TOO_FEW_VERSIONS, where the table's log does not go back so far
    */
  def version(session: SparkSession, name: String, n: Int): Long = {
    val statement = "get_latest_version"
    val latest =
      NamedTable.snapshot(session, NamedTable.load(session, name, statement), statement)
    def count = latest.version - DeltaHistoryManager.getEarliestDeltaFile(latest.deltaLog) + 1
    if (n > 1 && count < n) throw InterlockException.tooFewVersions(name, n, "versions", count)
    latest.version - n + 1
  }

  /** In microseconds since 1970: when a version was committed that logically added or removed at
    * least one row.
    *
    * @throws InterlockException
    *   INTERLOCK_TOO_FEW_VERSIONS, where the table's log has not so many
    */
  def timestamp(session: SparkSession, name: String, n: Int): Long = {
    val statement = "get_latest_timestamp"
    val table = NamedTable.load(session, name, statement)
    val found = NamedTable.history(session, table, statement, Map.empty).timeVersions().take(n)
    val (count, nth) = found.foldLeft((0, Option.empty[Long])) { case ((count, _), (_, time)) =>
      (count + 1, Some(DateTimeUtils.fromJavaTimestamp(time)))
    }
    nth.filter(_ => count == n).getOrElse(
      throw InterlockException.tooFewVersions(name, n, "time versions", count.toLong)
    )
  }
}
