package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.SkippedBlindAppends
import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.InterlockException
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.interlock.judging.{
  GovernedCommit,
  InterlockConflictChecker,
  PassedWinner,
  SerialOrder
}
import org.apache.spark.sql.delta.interlock.rebase.RowVectors
import org.apache.spark.sql.delta.{
  CurrentTransactionInfo,
  DeltaOperations,
  IsolationLevel,
  WinningCommitSummary
}

/** Judges a commit against the winners, one after the other.
  *
  * @param commit
  *   the commit that is judged
  * @param landed
  *   Delta's check whether a winner is the commit itself, whose reply was lost
  */
final private[transaction] class JudgingRounds(
    transaction: OpenTransaction,
    commit: GovernedCommit,
    winners: WinnerReader,
    audit: CommitAudit,
    landed: (WinningCommitSummary, Long, CurrentTransactionInfo) => Option[CurrentTransactionInfo]
) {
  private val table = transaction.table
  private val vectors = new RowVectors(table.log, transaction.staged.written(_: Path))

  /** The metadata with which the commit was first judged. */
  private var metadata: Option[Metadata] = None

  /** The blind appends that the commit has skipped so far. */
  var skipped: SkippedBlindAppends[WinningCommitSummary] = SkippedBlindAppends.none

  /** @param first
    *   the version that the commit wanted
    * @return
    *   the commit after the winners
    * @throws DeltaConcurrentModificationException
    *   if it loses against one
    */
  def judge(
      info: CurrentTransactionInfo,
      first: Long,
      files: Seq[FileStatus],
      level: IsolationLevel
  ): CurrentTransactionInfo = audit.round {
    if (metadata.isEmpty) metadata = Some(info.metadata)
    try
      files.foldLeft((info, Vector.empty[PassedWinner])) { case ((before, passed), file) =>
        val winner = transaction.times.in(TimedPhase.Winners)(winners.read(file))
        refuseIfVacuumed(winner, before)
        landed(winner, first, before).map(_ -> passed).getOrElse {
          lookAgain(winner, before, level)
          val checker = against(winner, before, level)
          val after = checker.checkConflictsAndValidateActions()
          (after, passed ++ checker.passed)
        }
      }
    finally vectors.finish()
  }

  private def against(
      winner: WinningCommitSummary,
      before: CurrentTransactionInfo,
      level: IsolationLevel
  ): InterlockConflictChecker = {
    audit.judging(winner)
    new InterlockConflictChecker(
      transaction.session,
      before,
      winner,
      level,
      commit,
      metadata.getOrElse(before.metadata),
      vectors,
      table.name
    )
  }

  /** Judges skipped blind appends after all, once a winner has read their rows. */
  private def lookAgain(
      winner: WinningCommitSummary,
      before: CurrentTransactionInfo,
      level: IsolationLevel
  ): Unit = {
    val (read, left) = skipped.readBy(winner, SerialOrder.facts(winner))
    read.foreach(against(_, before, level).failIfReadBy(winner.commitVersion))
    skipped = left
  }

  /** A VACUUM whose retention is shorter than a job may delete files that the job has yet to
    * commit.
    */
  private def refuseIfVacuumed(winner: WinningCommitSummary, info: CurrentTransactionInfo): Unit =
    if (winner.commitInfo.exists(_.operation == DeltaOperations.VacuumEnd.OPERATION_NAME)) {
      val missing = transaction.staged.missing(info.actions)
      if (missing > 0)
        throw InterlockException.filesVacuumed(
          Operations.name(info.op),
          table.name,
          winner.commitVersion,
          missing
        )
    }
}
