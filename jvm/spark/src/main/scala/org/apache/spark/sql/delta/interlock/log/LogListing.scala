package org.apache.spark.sql.delta.interlock.log

import org.apache.spark.SparkThrowable

/** Listings of a log to which others commit meanwhile. */
object LogListing {
  private val PausesMillis = List(0, 5, 20, 50)

  /** Delta's errors for a log in which a version is missing between others, or the first one. */
  private val Gaps = Set("DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_TRUNCATED_TRANSACTION_LOG")

  /** Lists a log, and lists it again if versions are missing.
    *
    * A folder to which files are added while it is listed may show the later file and not the
    * earlier one: POSIX leaves it open, and object stores and HDFS list in parts. Delta takes that
    * for a log that lost a version. Files that were there before a listing began are in it. Commits of
    * a batch come at once, so that a later listing begins after a pause.
    *
    * @param list
    *   changes nothing if it fails
    */
  def complete[T](list: => T): T = {
    def tried(pauses: List[Int]): T =
      try list
      catch {
        case error: SparkThrowable if pauses.nonEmpty && Gaps.contains(error.getCondition) =>
          Thread.sleep(pauses.head.toLong)
          tried(pauses.tail)
      }
    tried(PausesMillis)
  }
}
