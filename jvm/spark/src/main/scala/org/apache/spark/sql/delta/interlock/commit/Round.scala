package org.apache.spark.sql.delta.interlock.commit

import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.errors.InterlockException
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.judging.{
  GovernedCommit,
  InterlockConflictChecker,
  PassedWinner,
  SerialOrder
}
import org.apache.spark.sql.delta.interlock.rebase.RowVectors
import org.apache.spark.sql.delta.{CurrentTransactionInfo, DeltaOperations, WinningCommitSummary}

/** Judges a commit against winners, one after the other.
  *
  * @param commit
  *   the commit that is judged
  * @param own
  *   the metadata with which it came to its commit
  * @param unjudged
  *   what the commit is behind a winner that it is not judged against; none if it is judged
  */
final private[interlock] class Round(
    statement: Statement,
    commit: GovernedCommit,
    own: Metadata,
    winners: Winners,
    audit: CommitAudit,
    unjudged: (WinningCommitSummary, CurrentTransactionInfo) => Option[CurrentTransactionInfo] =
      (_, _) => None
) {
  private val table = statement.table
  private val vectors = new RowVectors(table.log, statement.staged.written(_: Path))

  /** @param files
    *   the files of the winners from `attempt.next` on; one that is on its way has length 0
    * @return
    *   the commit behind these winners
    * @throws DeltaConcurrentModificationException
    *   if it loses against one
    */
  def judge(attempt: Attempt, files: Seq[FileStatus]): Attempt =
    if (files.isEmpty) attempt
    else
      DeltaTableV2.withEnrichedUnsupportedTableException(table.catalogTable) {
        audit.round {
          try
            files.foldLeft((attempt, Vector.empty[PassedWinner])) {
              case ((before, passed), file) =>
                val (after, passes) = judge(before, file)
                (after, passed ++ passes)
            }
          finally vectors.finish()
        }
      }

  private def judge(before: Attempt, file: FileStatus): (Attempt, Option[PassedWinner]) = {
    val winner = statement.times.in(TimedPhase.Winners)(winners.read(file))
    refuseOwn(winner)
    refuseIfVacuumed(winner, before)
    def passed = if (CommitTags.reserves(winner.commitInfo)) Some(reserved(winner, before, file))
    else unjudged(winner, before.info).map(before.behind(file, _, before.skipped))
    passed.map(_ -> None).getOrElse {
      val (read, skipped) = before.skipped.readBy(winner, SerialOrder.facts(winner))
      // Blind appends that it was ordered before, and whose rows the winner has read.
      read.foreach(against(_, before).failIfReadBy(winner.commitVersion))
      val checker = against(winner, before)
      val info = checker.checkConflictsAndValidateActions()
      before.behind(file, info, skipped) -> checker.passed
    }
  }

  /** The commit behind a version that only reserves the next one for an atomic block. */
  private def reserved(winner: WinningCommitSummary, before: Attempt, file: FileStatus): Attempt = {
    val behind = before.behindReserved(file)
    val earliest = winner.commitInfo.flatMap(_.inCommitTimestamp).getOrElse(0L) + 1
    val later = behind.info.commitInfo.map(info =>
      info.copy(inCommitTimestamp = info.inCommitTimestamp.map(_.max(earliest)))
    )
    behind.copy(info = behind.info.copy(commitInfo = later))
  }

  private def against(winner: WinningCommitSummary, before: Attempt): InterlockConflictChecker = {
    audit.judging(winner)
    new InterlockConflictChecker(
      statement.session,
      before.info,
      winner,
      before.level,
      commit,
      own,
      vectors,
      table.name
    )
  }

  /** Stores recognise a commit that they have made before. If one does not, its files are live. */
  private def refuseOwn(winner: WinningCommitSummary): Unit =
    if (winner.commitInfo.flatMap(_.txnId).contains(statement.txnId))
      throw statement.unknown(
        winner.commitVersion,
        new IllegalStateException("The store has taken it for another's commit.")
      )

  /** A VACUUM whose retention is shorter than a job may delete files that the job has yet to
    * commit.
    */
  private def refuseIfVacuumed(winner: WinningCommitSummary, attempt: Attempt): Unit =
    if (winner.commitInfo.exists(_.operation == DeltaOperations.VacuumEnd.OPERATION_NAME)) {
      val missing = statement.staged.missing(attempt.info.actions)
      if (missing > 0)
        throw InterlockException(
          "INTERLOCK_FILES_VACUUMED",
          "operation" -> Operations.name(attempt.info.op),
          "table" -> table.name,
          "version" -> winner.commitVersion.toString,
          "files" -> missing.toString
        )
    }
}
