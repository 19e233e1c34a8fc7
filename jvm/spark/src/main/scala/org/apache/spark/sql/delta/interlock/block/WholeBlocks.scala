package org.apache.spark.sql.delta.interlock.block

import scala.annotation.tailrec
import scala.util.control.NonFatal

import io.interlock.coordinator.Causes
import io.interlock.spark.commits.Coordinators
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.interlock.commit.Siblings
import org.apache.spark.sql.delta.interlock.log.FreshSnapshot
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Snapshots of several tables that have each atomic block in all of them or in none. */
private[block] object WholeBlocks extends Logging {
  private val MostRounds = 20
  private val MostLooks = 20
  private val BetweenLooksMillis = 100L

  /** A table as it was read. */
  final case class Read(snapshot: Snapshot, table: Option[CatalogTable]) {
    def log: DeltaLog = snapshot.deltaLog
    def version: Long = snapshot.version
    def newest: Read = copy(snapshot = WholeBlocks.newest(log, table))
    def previous: Read =
      copy(snapshot = log.getSnapshotAt(version - 1, catalogTableOpt = table))
  }

  /** The newest snapshot of a table. */
  def newest(log: DeltaLog, table: Option[CatalogTable]): Snapshot =
    FreshSnapshot.of(log, table).getOrElse(log.update(catalogTableOpt = table))

  /** The tables as they were read, or later, so that they belong together. */
  @tailrec def together(tables: Seq[Read], rounds: Int = MostRounds): Seq[Read] = {
    val least =
      tables.flatMap(table => Siblings.of(table.snapshot)).groupMapReduce(_._1)(_._2)(_ max _)
    val found = tables.map(table =>
      least.get(table.snapshot.metadata.id).fold(table)(reaching(table, _, MostLooks))
    )
    if (found.map(_.version) == tables.map(_.version) || rounds == 1) found
    else together(found, rounds - 1)
  }

  /** The table as it was read, or later or earlier, so that it belongs to others as they were read. */
  def beside(others: Seq[Snapshot], table: Read): Read = {
    val id = table.snapshot.metadata.id
    val least = others.flatMap(Siblings.of(_).get(id)).maxOption
    withoutLater(others, least.fold(table)(reaching(table, _, MostLooks)))
  }

  @tailrec private def withoutLater(others: Seq[Snapshot], table: Read): Read = {
    val versions = Siblings.of(table.snapshot)
    if (others.forall(other => versions.get(other.metadata.id).forall(_ <= other.version))) table
    else withoutLater(others, table.previous)
  }

  /** The table with a version that a block has made in it, or is about to make visible. */
  @tailrec private def reaching(table: Read, version: Long, looks: Int): Read =
    if (table.version >= version) table
    else {
      val now = table.newest
      if (now.version >= version) now
      else if (looks == 0) {
        logWarning(
          s"${table.log.dataPath} ends with version ${now.version}, and another table of the query " +
            s"has a part of the atomic block that makes version $version in it. Either that table " +
            "has been put back to an earlier state, or this session may not complete the block."
        )
        now
      } else if (isCompleted(now)) reaching(now, version, 0)
      else {
        Thread.sleep(BetweenLooksMillis)
        reaching(now, version, looks - 1)
      }
    }

  /** Makes the part of a block visible that is decided, as the next writer would.
    *
    * @return
    *   false if that is not possible, so that its own writer has to do it
    */
  private def isCompleted(table: Read): Boolean =
    try {
      val metadata = table.snapshot.metadata
      Coordinators.queue(SparkSession.active, table.log, metadata.configuration, metadata.id)
        .foreach(_.settle(table.version))
      true
    } catch {
      case NonFatal(failed) if !Causes.areInterrupt(failed) =>
        logInfo(s"The atomic block at the end of ${table.log.dataPath} is left to others: $failed")
        false
    }
}
