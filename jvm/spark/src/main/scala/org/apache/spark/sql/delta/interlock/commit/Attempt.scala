package org.apache.spark.sql.delta.interlock.commit

import io.interlock.rules.SkippedBlindAppends
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.{CurrentTransactionInfo, IsolationLevel, WinningCommitSummary}

/** A commit as it stands behind the winners that it has been judged against so far.
  *
  * @param next
  *   the version that it wants; it was judged against all commits before it
  * @param info
  *   its reads and actions, rebased over these winners
  * @param level
  *   the isolation level by which it is judged
  * @param winners
  *   the files of the winners; one that is still on its way to the log has length 0
  * @param skipped
  *   the blind appends that it is ordered before
  * @param generation
  *   the queue's generation when the winners were chosen; none before it has the turn
  * @param inLog
  *   the commit behind the winners that are in the log, if it was also judged against some that are
  *   on their way: these may fail
  */
final private[interlock] case class Attempt(
    next: Long,
    info: CurrentTransactionInfo,
    level: IsolationLevel,
    winners: Vector[FileStatus] = Vector.empty,
    skipped: SkippedBlindAppends[WinningCommitSummary] = SkippedBlindAppends.none,
    generation: Option[Long] = None,
    private val inLog: Option[Attempt] = None
) {
  def lastInLog: Attempt = inLog.getOrElse(this)

  /** Whether a commit that it was judged against may have failed, since the queue has another
    * generation now.
    */
  def isOutdated(now: Long): Boolean = inLog.nonEmpty && !generation.contains(now)

  /** The commit behind a version that has no actions, and only reserves the next one.
    *
    * @param reserving
    *   its file
    */
  def behindReserved(reserving: FileStatus): Attempt = {
    // As Delta does behind any winner.
    val actions = info.actions.map {
      case file: AddFile if file.defaultRowCommitVersion.contains(next) =>
        file.copy(defaultRowCommitVersion = Some(next + 1))
      case other => other
    }
    behind(reserving, info.copy(actions = actions), skipped)
  }

  /** The commit behind one more winner.
    *
    * @param winner
    *   the winner's file
    */
  def behind(
      winner: FileStatus,
      info: CurrentTransactionInfo,
      skipped: SkippedBlindAppends[WinningCommitSummary]
  ): Attempt = copy(
    next = next + 1,
    info = info,
    winners = winners :+ winner,
    skipped = skipped,
    inLog = if (winner.getLen > 0 && inLog.isEmpty) None else Some(lastInLog)
  )
}
