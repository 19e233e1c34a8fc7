package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.SkippedBlindAppends
import org.apache.spark.sql.delta.{CurrentTransactionInfo, LogSegment, WinningCommitSummary}

/** How far the commit of a transaction has come. */
sealed private[transaction] trait CommitState

private[transaction] object CommitState {

  /** The statement runs, or what it read is only checked; or Delta commits by itself. */
  case object Unsent extends CommitState

  /** It waits for its turn in the queue, or is sent.
    *
    * @param next
    *   it is judged against all commits before this version, and they are in the log
    * @param info
    *   the commit as it stands after them
    * @param generation
    *   of the queue, when it was decided what else it is judged against
    */
  final case class Judged(
      next: Long,
      info: CurrentTransactionInfo,
      segment: LogSegment,
      skipped: SkippedBlindAppends[WinningCommitSummary],
      generation: Option[Long] = None
  ) extends CommitState

  /** It is in the log, whatever fails afterwards. */
  case object Made extends CommitState
}
