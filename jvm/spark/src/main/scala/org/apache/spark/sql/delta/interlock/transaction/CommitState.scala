package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.SkippedBlindAppends
import org.apache.spark.sql.delta.{CurrentTransactionInfo, LogSegment, WinningCommitSummary}

/** The state of a transaction's commit. */
sealed private[transaction] trait CommitState

private[transaction] object CommitState {

  /** The statement is running, or its reads are only checked, or Delta commits without the queue.
    */
  case object Unsent extends CommitState

  /** The commit waits for its turn in the queue, or was sent.
    *
    * @param next
    *   the commit was judged against all commits before this version, which are in the log
    * @param info
    *   the commit after these winners
    * @param generation
    *   the queue's generation when the other commits to judge against were chosen
    */
  final case class Judged(
      next: Long,
      info: CurrentTransactionInfo,
      segment: LogSegment,
      skipped: SkippedBlindAppends[WinningCommitSummary],
      generation: Option[Long] = None
  ) extends CommitState

  /** The commit is in the log, even if a later step fails. */
  case object Made extends CommitState
}
