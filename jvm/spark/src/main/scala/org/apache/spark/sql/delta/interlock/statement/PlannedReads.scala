package org.apache.spark.sql.delta.interlock.statement

import java.io.FileNotFoundException

import io.interlock.rules.SkippedBlindAppends
import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.{Conflicts, InterlockConflict, Unjudged}
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.interlock.commit._
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, OwnCommits}
import org.apache.spark.sql.delta.interlock.rebase.MovedReads
import org.apache.spark.sql.delta.stats.DeltaScan

/** Reads of a statement's plans, to be counted among those of its transaction.
  *
  * @param skipped
  *   the blind appends that the statement is ordered before
  */
final private[statement] case class TakenReads(
    predicates: Seq[DeltaTableReadPredicate],
    files: Seq[AddFile],
    areOfWholeTable: Boolean,
    skipped: SkippedBlindAppends[WinningCommitSummary]
)

private[statement] object TakenReads {
  val none: TakenReads = TakenReads(Nil, Nil, areOfWholeTable = false, SkippedBlindAppends.none)
}

/** The reads of a statement's plans that Delta does not track, see [[PlanReads]]. Those of a version
  * before the transaction's are judged against the commits between, as a transaction that began
  * then and writes nothing.
  *
  * @param tracked
  *   the reads that Delta has tracked, without actions
  */
final private[statement] class PlannedReads(
    statement: Statement,
    commit: GovernedCommit,
    tracked: CurrentTransactionInfo,
    audit: CommitAudit
) {
  private val table = statement.table

  /** @throws DeltaConcurrentModificationException
    *   if a commit behind one of the reads changed what was read
    */
  def takeUp(reads: Set[PlanRead], level: IsolationLevel): TakenReads = {
    val groups = reads.groupBy(read => (read.version, read.thread))
    // What the statement reads otherwise has the rows of blind appends between the two, so it cannot
    // count as committed before them.
    val isBlind = groups.size == 1 && tracked.readPredicates.isEmpty && !tracked.readWholeTable
    val taken = groups.toSeq.map { case ((version, thread), group) =>
      val isOwn = thread.contains(Thread.currentThread.getId)
      val read = Attempt(version + 1, infoOf(group), if (isBlind) level else Serializable)
      val isEarlier = version < table.snapshot.version && commit.policy.judgesReads
      if (isEarlier) judged(read, isOwn) else read
    }
    TakenReads(
      taken.flatMap(_.info.readPredicates),
      taken.flatMap(_.info.readFiles),
      taken.exists(_.info.readWholeTable),
      if (isBlind) taken.head.skipped else SkippedBlindAppends.none
    )
  }

  private def infoOf(reads: Set[PlanRead]): CurrentTransactionInfo = {
    val scans = reads.toVector.flatMap(_.scan) // equal if they selected the same files
    tracked.copy(
      readPredicates = scans.map(predicate),
      readFiles = scans.flatMap(_.files).toSet,
      readWholeTable = reads.exists(_.scan.isEmpty),
      readAppIds = Set.empty
    )
  }

  private def predicate(scan: DeltaScan) = DeltaTableReadPredicate(
    scan.partitionFilters.toSeq,
    (scan.allFilters -- scan.partitionFilters).toSeq
  )

  /** @param isOwn
    *   whether this thread has read it: then its own commits do not count, since the program has made
    *   them after it had read
    */
  private def judged(read: Attempt, isOwn: Boolean): Attempt =
    try {
      val round = new Round(
        statement,
        commit.copy(matched = Nil), // of the transaction's own scans
        read.info.metadata,
        new Winners(table, warns = false),
        audit,
        (winner, info) =>
          Option.when(isOwn && OwnCommits.has(winner) || changesNoRows(winner))(
            MovedReads.follow(info, winner)
          )
      )
      round.judge(read, (read.next to table.snapshot.version).map(table.commit))
    } catch {
      case lost: InterlockConflict => throw Conflicts.raised(
          lost.conflict.copy(
            readVersion = read.next - 1,
            why = s"${lost.conflict.why}; it had read them before its transaction began"
          ),
          SessionPolicies.readable
        )
      case gone: FileNotFoundException if table.isThere =>
        throw Conflicts.unjudged(
          Unjudged.CommitsGone,
          commit.policy,
          commit.operationClass,
          Operations.name(commit.operation),
          table.name,
          read.next - 1,
          statement.txnId,
          Some(gone)
        )
    }

  /** Whether a commit leaves all rows, and the names of their columns, as they were: a compaction
    * moves rows, and what was read before it began is the same.
    */
  private def changesNoRows(winner: WinningCommitSummary) =
    !winner.actions.exists {
      case file: FileAction => file.dataChange
      case _ => false
    } && winner.metadataUpdates.forall(set =>
      set.columnMappingMode == NoMapping || set.schema == table.snapshot.metadata.schema
    )
}
