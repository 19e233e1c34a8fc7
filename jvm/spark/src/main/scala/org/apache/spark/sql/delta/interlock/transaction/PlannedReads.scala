package org.apache.spark.sql.delta.interlock.transaction

import java.io.FileNotFoundException

import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.{Conflicts, InterlockConflict, Unjudged}
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{CommitInfo, FileAction}
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, OwnCommits}
import org.apache.spark.sql.delta.interlock.rebase.MovedReads
import org.apache.spark.sql.delta.stats.DeltaScan

/** The reads of a statement's plans that Delta does not track, see [[PlanReads]]. They are counted
  * among those of its transaction. Those of a version before the transaction's are first judged
  * against the commits between, as a transaction that began then and writes nothing.
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

  /** The reads of one version by one thread. */
  private val groups = transaction.reads.ofPlans.groupBy(read => (read.version, read.thread))

  // What the statement reads otherwise has the rows of blind appends between the two, so it cannot
  // count as committed before them.
  private val isBlind = groups.size == 1 && transaction.predicates.isEmpty &&
    !transaction.withoutActions(DeltaOperations.ManualUpdate).readWholeTable

  /** @throws DeltaConcurrentModificationException
    *   if a commit behind one of the reads changed what was read
    */
  def takeUp(level: IsolationLevel): Unit = groups.foreach { case ((version, thread), reads) =>
    val scans = reads.toVector.flatMap(_.scan) // equal if they selected the same files
    val read = transaction.withoutActions(DeltaOperations.ManualUpdate).copy(
      readPredicates = scans.map(predicate),
      readFiles = scans.flatMap(_.files).toSet,
      readWholeTable = reads.exists(_.scan.isEmpty),
      readAppIds = Set.empty,
      commitInfo = Some(CommitInfo.empty().copy(inCommitTimestamp = Some(0L)))
    )
    val isEarlier = version < table.snapshot.version && commit.policy.judgesReads
    val isOwn = thread.contains(Thread.currentThread.getId)
    val now = if (isEarlier) judged(read, version, isOwn, level) else read
    transaction.track(now.readPredicates, now.readFiles)
    if (now.readWholeTable) transaction.readWholeTable()
  }

  private def predicate(scan: DeltaScan) = DeltaTableReadPredicate(
    scan.partitionFilters.toSeq,
    (scan.allFilters -- scan.partitionFilters).toSeq
  )

  /** @param isOwn
    *   whether this thread has read it: then its own commits do not count, since the program has made
    *   them after it had read
    */
  private def judged(
      read: CurrentTransactionInfo,
      version: Long,
      isOwn: Boolean,
      level: IsolationLevel
  ): CurrentTransactionInfo =
    try {
      val earlier = new JudgingRounds(
        transaction,
        commit.copy(matched = Nil), // of the transaction's own scans
        new WinnerReader(table, isCoordinated = false),
        audit,
        (winner, _, info) =>
          if (isOwn && OwnCommits.has(winner)) Some(MovedReads.follow(info, winner))
          else Some(info).filter(_ => changesNoRows(winner))
      )
      val winners = (version + 1 to table.snapshot.version).map(table.commit)
      val after = earlier.judge(read, version + 1, winners, if (isBlind) level else Serializable)
      if (isBlind) rounds.skipped = earlier.skipped
      after
    } catch {
      case lost: InterlockConflict => throw Conflicts.raised(
          lost.conflict.copy(
            readVersion = version,
            why = s"${lost.conflict.why}; it had read them before its transaction began"
          ),
          SessionPolicies.readable
        )
      case gone: FileNotFoundException if transaction.isSameTable =>
        throw Conflicts.unjudged(
          Unjudged.CommitsGone,
          commit.policy,
          commit.operationClass,
          Operations.name(commit.operation),
          table.name,
          version,
          transaction.txnId,
          Some(gone)
        )
    }

  /** Whether a commit leaves all rows, and the names of their columns, as they were. */
  private def changesNoRows(winner: WinningCommitSummary) =
    !winner.actions.exists(_.isInstanceOf[FileAction]) && winner.metadataUpdates.forall(set =>
      set.columnMappingMode == NoMapping || set.schema == table.snapshot.metadata.schema
    )
}
