package org.apache.spark.sql.delta.interlock.block

import scala.annotation.tailrec
import scala.concurrent.duration._
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
  private val Patience = 2.seconds
  private val BetweenLooks = 100.millis

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

  /** The snapshot of a table with the block that is decided and about to be visible behind it. */
  def settled(snapshot: Snapshot, table: Option[CatalogTable]): Snapshot =
    if (!Siblings.mayHave(snapshot.metadata)) snapshot
    else {
      isCompleted(Read(snapshot, table)): Unit
      Seq(snapshot, newest(snapshot.deltaLog, table)).maxBy(_.version)
    }

  /** The tables at the newest versions that belong together, and to those that are fixed. */
  def together(fixed: Seq[Read], tables: Seq[Read]): Seq[Read] = {
    val found = back(fixed, forward(fixed, tables, MostTries))
    if (!found.forall(reaches(_, fixed))) logWarning(
      s"${(fixed ++ found).map(_.log.dataPath).mkString(", ")} are read with parts of blocks."
    )
    found
  }

  /** The table at the newest version that belongs to others as they were read; none if there is no
    * such version, since one of them belongs to a version behind a block that another lacks.
    */
  def beside(others: Seq[Read], table: Read): Option[Read] =
    back(others, forward(others, Seq(table), MostTries)).headOption.filter(reaches(_, others))

  private def reaches(table: Read, others: Seq[Read]) =
    others.flatMap(_.wants(table)).forall(_ <= table.version)

  /** The tables with the blocks that others have. What is behind is read anew, and may then have
    * blocks that others lack.
    */
  @tailrec private def forward(fixed: Seq[Read], tables: Seq[Read], tries: Int): Seq[Read] = {
    val raised = tables.map(table =>
      (fixed ++ tables).flatMap(_.wants(table)).maxOption
        .fold(table)(reaching(table, _))
    )
    if (tries == 0 || areSame(raised, tables)) raised else forward(fixed, raised, tries - 1)
  }

  /** The tables without the blocks that others lack. */
  @tailrec private def back(fixed: Seq[Read], tables: Seq[Read]): Seq[Read] = {
    val lowered = tables.map { table =>
      val first = for {
        other <- fixed ++ tables
        wanted <- table.wants(other) if wanted > other.version
        version <- firstBlock(other, wanted, table)
      } yield version
      first.minOption.fold(table)(made => table.at(made - 1))
    }
    if (areSame(lowered, tables)) tables else back(fixed, lowered)
  }

  private def areSame(some: Seq[Read], others: Seq[Read]) =
    some.map(_.version) == others.map(_.version)

  /** The version that the first block has made in a table that another one lacks.
    *
    * @param lacking
    *   the table that has the block's part behind its version
    * @param last
    *   up to where
    */
  private def firstBlock(lacking: Read, last: Long, table: Read): Option[Long] = {
    val now = lacking.newest
    val theirs = new CommitLog(now.snapshot)
    (lacking.version + 1 to last.min(now.version)).iterator.flatMap(theirs.readWithoutFiles)
      .flatMap(commit => Siblings.in(commit.numbered).get(table.id)).nextOption()
      .orElse(lastBlock(table, lacking))
  }

  /** The version that the last block of both tables has made in the first one, as that one's log says:
    * the other part is not visible.
    */
  private def lastBlock(table: Read, other: Read): Option[Long] = {
    val commits = new CommitLog(table.snapshot)
    (table.version to 0 by -1).iterator
      .find(commits.readWithoutFiles(_).exists(c => Siblings.in(c.numbered).contains(other.id)))
  }

  /** The table with a version that a block has made in it, or is about to make visible. */
  private def reaching(table: Read, version: Long): Read = {
    val until = Patience.fromNow
    @tailrec def look(isLast: Boolean): Read = {
      val now = table.newest
      if (now.version >= version) now
      else if (isLast) {
        logWarning(
          s"${table.log.dataPath} ends with version ${now.version}, and another table that is read " +
            s"with it has a part of the atomic block that makes version $version. Either it has " +
            "been put back to an earlier state, or this session cannot complete the block. The " +
            "query reads the tables as they were before the block."
        )
        now
      } else {
        val isOver = isCompleted(now) || until.isOverdue()
        if (!isOver) Thread.sleep(BetweenLooks.toMillis)
        look(isLast = isOver)
      }
    }
    if (table.version >= version) table else look(isLast = false)
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
