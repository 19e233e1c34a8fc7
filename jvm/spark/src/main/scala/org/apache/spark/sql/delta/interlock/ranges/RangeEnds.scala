package org.apache.spark.sql.delta.interlock.ranges

import java.sql.Timestamp

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.TablePolicy
import io.interlock.spark.ranges.Point
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.DeltaErrors.TimestampEarlierThanCommitRetentionException
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** The ends of a range of versions.
  *
  * @param after
  *   the last version outside of it, or -1
  * @param isNewest
  *   whether that is the table's newest version
  */
final private[interlock] case class RangeEnds(after: Long, snapshot: Snapshot, isNewest: Boolean)

/** Finds the ends of ranges of a table, and refuses ranges that cannot be read. */
final class RangeReader(log: DeltaLog, catalogTable: Option[CatalogTable]) {
  private val table =
    catalogTable.fold(s"delta.`${log.dataPath}`")(_.identifier.unquotedString)
  private val latest = log.update(catalogTableOpt = catalogTable)
  private lazy val earliest = log.history.getEarliestRecreatableCommit
  private val hasPolicy = TablePolicy.named(latest.metadata.configuration).nonEmpty

  /** @throws InterlockException
    *   INTERLOCK_VERSION_NOT_THERE, INTERLOCK_RANGE_BACKWARDS, INTERLOCK_ROW_TRACKING_REQUIRED or
    *   INTERLOCK_ROW_TRACKING_TOO_LATE
    */
  def ends(after: Point, until: Option[Point]): RangeEnds = {
    val end = until.fold(latest.version)(endOf)
    val begin = beginOf(after)
    if (begin > end)
      throw InterlockException(
        "INTERLOCK_RANGE_BACKWARDS",
        "table" -> table,
        "after" -> begin.toString,
        "until" -> end.toString
      )
    val snapshot = snapshotAt(end)
    if (!isTracked(snapshot))
      throw InterlockException(
        "INTERLOCK_ROW_TRACKING_REQUIRED",
        "table" -> table,
        "version" -> end.toString,
        "help" -> usable(end).fold(
          "Turn it on for what is written from now on: " +
            s"ALTER TABLE $table SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')."
        )(first =>
          s"It is on by now: ask for ranges that begin with version $first or a later one."
        )
      )
    Option.when(begin >= 0)(begin).flatMap(untracked(snapshot, _)).foreach(found =>
      throw InterlockException(
        "INTERLOCK_ROW_TRACKING_TOO_LATE",
        "table" -> table,
        "after" -> begin.toString,
        "first" -> found.first.toString,
        "why" -> found.why
      )
    )
    RangeEnds(begin, snapshot, isNewest = end == latest.version)
  }

  private def endOf(point: Point): Long = point match {
    case Point.Version(id) => there(id)
    case Point.Time(micros) => versionAt(micros)
  }

  private def beginOf(point: Point): Long = point match {
    case Point.Version(-1) => -1
    case Point.Version(id) => there(id)
    case Point.Time(micros) =>
      try versionAt(micros)
      catch { case _: TimestampEarlierThanCommitRetentionException if earliest == 0 => -1 }
  }

  private def there(version: Long): Long =
    if (version >= earliest && version <= latest.version) version
    else
      throw InterlockException(
        "INTERLOCK_VERSION_NOT_THERE",
        "table" -> table,
        "version" -> version.toString,
        "earliest" -> earliest.toString,
        "latest" -> latest.version.toString
      )

  /** The last version committed at or before a time. For a time after the last commit, that is the
    * latest version if the table has a policy; otherwise it is Delta's error.
    */
  private def versionAt(micros: Long): Long = {
    val time = new Timestamp(Math.floorDiv(micros, 1000L))
    log.history.getActiveCommitAtTime(time, catalogTable, canReturnLastCommit = hasPolicy).version
  }

  private def snapshotAt(version: Long): Snapshot =
    if (version == latest.version) latest
    else
      log.getSnapshotAt(
        version,
        catalogTableOpt = catalogTable,
        enforceTimeTravelWithinDeletedFileRetention = true
      )

  private def isTracked(snapshot: Snapshot): Boolean =
    TrackedVersions.isTracked(snapshot.protocol, snapshot.metadata)

  private def untracked(end: Snapshot, begin: Long): Option[Untracked] =
    new TrackedVersions(end, log.getSnapshotAt(_, catalogTableOpt = catalogTable))
      .untrackedSince(begin)

  /** The first version after `without`, which has no row tracking, with which a range may begin. */
  private def usable(without: Long): Option[Long] =
    Option.when(isTracked(latest))(latest).flatMap(untracked(_, without)).map(_.first)
}
