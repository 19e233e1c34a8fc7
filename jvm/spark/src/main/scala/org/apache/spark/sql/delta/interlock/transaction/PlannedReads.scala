package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.spark.errors.{Conflicts, InterlockConflict}
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, CommitInfo, FileAction}
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, OwnCommits}

/** The reads of a statement's plans that Delta does not track, see [[PlanReads]]. They are counted
  * among those of its transaction. If the oldest of them is of a version before the transaction's,
  * they are first judged against the commits between, as a transaction that began then and writes
  * nothing.
  *
  * @param rounds
  *   those of the commit, which go on from there
  */
final private[transaction] class PlannedReads(
    transaction: OpenTransaction,
    commit: GovernedCommit,
    rounds: JudgingRounds,
    audit: CommitAudit
) {
  private val table = transaction.table
  private val reads = transaction.reads.ofPlans
  private val scans = reads.flatMap(_.scan)
  private val isWhole = scans.size < reads.size
  private val predicates = scans.map(scan =>
    DeltaTableReadPredicate(
      scan.partitionFilters.toSeq,
      (scan.allFilters -- scan.partitionFilters).toSeq
    )
  )

  /** @param level
    *   the level of the commit
    * @throws DeltaConcurrentModificationException
    *   if a commit behind the oldest of the reads changed what was read
    */
  def takeUp(level: IsolationLevel): Unit = if (reads.nonEmpty) {
    val files = scans.flatMap(_.files).toSet
    val oldest = reads.map(_.version).min
    val isEarlier = oldest < table.snapshot.version && commit.policy.judgesReads
    transaction.track(predicates, if (isEarlier) judgedFrom(oldest, files, level) else files)
    if (isWhole) transaction.readWholeTable()
  }

  /** @return
    *   the files that were read, or those to which compactions have moved their rows
    */
  private def judgedFrom(read: Long, files: Set[AddFile], level: IsolationLevel): Set[AddFile] =
    try {
      val reader = new WinnerReader(table, isCoordinated = false)
      val earlier = new JudgingRounds(
        transaction,
        commit,
        reader,
        audit,
        (winner, _, info) => Option.when(isPassed(winner))(info)
      )
      // What the statement reads in its transaction has the rows of blind appends between the two,
      // so it cannot count as committed before them.
      val isBlindToThem = transaction.predicates.isEmpty
      val winners = (read + 1 to table.snapshot.version).map(table.commit)
      val judged = earlier.judge(
        asRead(files),
        read + 1,
        winners,
        if (isBlindToThem) level else Serializable
      )
      if (isBlindToThem) rounds.skipped = earlier.skipped
      judged.readFiles
    } catch {
      case lost: InterlockConflict => throw Conflicts.raised(
          lost.conflict.copy(
            readVersion = read,
            why = s"${lost.conflict.why}; it had read them before its transaction began"
          ),
          SessionPolicies.readable
        )
    }

  private def asRead(files: Set[AddFile]): CurrentTransactionInfo =
    transaction.withoutActions(DeltaOperations.ManualUpdate).copy(
      readPredicates = predicates.toVector,
      readFiles = files,
      readWholeTable = isWhole,
      readAppIds = Set.empty,
      commitInfo = Some(CommitInfo.empty().copy(inCommitTimestamp = Some(0L)))
    )

  /** A commit that changed no rows does not count, nor does one of the same thread: the program has
    * made it after it had read.
    */
  private def isPassed(winner: WinningCommitSummary): Boolean =
    !winner.actions.exists(_.isInstanceOf[FileAction]) || OwnCommits.has(winner)
}
