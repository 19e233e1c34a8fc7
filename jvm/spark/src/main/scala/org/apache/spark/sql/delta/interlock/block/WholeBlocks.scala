package org.apache.spark.sql.delta.interlock.block

import scala.annotation.tailrec
import scala.util.control.NonFatal

import io.interlock.coordinator.Causes
import io.interlock.spark.commits.Coordinators
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.interlock.commit.Siblings
import org.apache.spark.sql.delta.interlock.log.{CommitLog, FreshSnapshot}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Snapshots of several tables that have each atomic block in all of them or in none. */
private[block] object WholeBlocks extends Logging {
  private val MostTries = 10
  private val MostLooks = 20
  private val BetweenLooksMillis = 100L

  /** A table as it was read. */
  final case class Read(snapshot: Snapshot, table: Option[CatalogTable]) {
    def log: DeltaLog = snapshot.deltaLog
    def id: String = snapshot.metadata.id
    def version: Long = snapshot.version

    /** The least version of another table to which it belongs. */
    def wants(other: Read): Option[Long] = Siblings.of(snapshot).get(other.id)
    def newest: Read = copy(snapshot = WholeBlocks.newest(log, table))
    def at(version: Long): Read =
      copy(snapshot = log.getSnapshotAt(version, catalogTableOpt = table))
  }

  /** The newest snapshot of a table. */
  def newest(log: DeltaLog, table: Option[CatalogTable]): Snapshot =
    FreshSnapshot.of(log, table).getOrElse(log.update(catalogTableOpt = table))

  /** The tables at versions that belong together, and to those that are fixed. */
  @tailrec def together(fixed: Seq[Read], tables: Seq[Read], tries: Int = 1): Seq[Read] = {
    val found = tables.foldLeft(Option(Vector.empty[Read]))((done, next) =>
      done.flatMap(before => beside(fixed ++ before, next).map(before :+ _))
    )
    found match {
      case Some(all) => all
      case None if tries < MostTries => together(fixed, tables.map(_.newest), tries + 1)
      case None =>
        logWarning(s"${tables.map(_.log.dataPath).mkString(", ")} are read with parts of blocks.")
        tables
    }
  }

  /** The table at the newest version that belongs to others as they were read; none if there is no
    * such version, since one of them belongs to a version behind a block that another lacks.
    */
  def beside(others: Seq[Read], table: Read): Option[Read] = {
    val least = others.flatMap(_.wants(table)).maxOption
    val newest = least.fold(table)(reaching(table, _, MostLooks))
    val ends = others.flatMap(other =>
      newest.wants(other).filter(_ > other.version).flatMap(firstBlock(other, _, newest))
    )
    ends.minOption.map(_ - 1) match {
      case None => Some(newest)
      case Some(last) => Option.unless(least.exists(_ > last))(newest.at(last))
    }
  }

  /** The version that the first block has made in a table that another one lacks.
    *
    * @param lacking
    *   the table that has the block's part behind its version
    * @param last
    *   up to where
    */
  private def firstBlock(lacking: Read, last: Long, table: Read): Option[Long] = {
    val commits = new CommitLog(reaching(lacking, last, MostLooks).snapshot)
    (lacking.version + 1 to last).iterator.flatMap(commits.readWithoutFiles)
      .flatMap(commit => Siblings.in(commit.numbered).get(table.id)).nextOption()
  }

  /** The table with a version that a block has made in it, or is about to make visible. */
  @tailrec private def reaching(table: Read, version: Long, looks: Int): Read =
    if (table.version >= version) table
    else {
      val now = table.newest
      if (now.version >= version) now
      else if (looks == 0) {
        logWarning(
          s"${table.log.dataPath} ends with version ${now.version}, and another table that is read " +
            s"with it has a part of the atomic block that makes version $version. Either it has " +
            "been put back to an earlier state, or this session may not complete the block."
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
