package org.apache.spark.sql.delta.interlock.log

import org.apache.spark.SparkThrowable

/** Listings of a log to which others commit meanwhile. */
object LogListing {
  private val Again = 3

  /** Delta's errors for a log in which a version is missing between others, or the first one. */
  private val Gaps = Set("DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_TRUNCATED_TRANSACTION_LOG")

  /** Lists a log, and lists it again if versions are missing.
    *
    * A folder to which files are added while it is listed may show the later file and not the
    * earlier one: POSIX leaves it open, and object stores and HDFS list in parts. Delta takes that
    * for a log that lost a version. Files that were there before a listing began are in it.
    *
    * @param list
    *   changes nothing if it fails
    */
  def complete[T](list: => T): T = {
    def tried(again: Int): T =
      try list
      catch {
        case error: SparkThrowable if again > 0 && Gaps.contains(error.getCondition) =>
          tried(again - 1)
      }
    tried(Again)
  }
}
