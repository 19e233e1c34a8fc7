package org.apache.spark.sql.delta.interlock.transaction

import java.util.concurrent.TimeUnit

import scala.util.Try

import io.interlock.rules.Policy
import io.interlock.spark.audit.AuditTrail
import org.apache.spark.interlock.metrics.InterlockMetrics
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.interlock.judging.PassedWinner

/** The record of what a commit met: in its own tags where it passed others, beside the log where it
  * was rejected, and in Spark's metrics.
  */
final private[transaction] class CommitAudit(
    transaction: OpenTransaction,
    winners: WinnerReader
) {
  private var judgedAgainst: Option[WinningCommitSummary] = None
  private var passedVerdicts: Seq[String] = Nil

  /** To be called before the commit is judged against a winner. */
  def judging(winner: WinningCommitSummary): Unit = judgedAgainst = Some(winner)

  /** Runs a round of judging, which gives the commit as it stands after it and whom it passed. */
  def round(
      judge: => (CurrentTransactionInfo, Seq[PassedWinner])
  ): CurrentTransactionInfo = {
    judgedAgainst = None
    val start = System.nanoTime()
    val (resolved, passed) =
      try judge
      finally InterlockMetrics.judgeMillis.update(millisSince(start))
    judgedAgainst = None
    if (passed.isEmpty) resolved
    else PassedWinner.tag(resolved, passed, millisSince(start), transaction.staged.bytes)
  }

  /** To be called when the commit is sent. */
  def sent(info: CurrentTransactionInfo): Unit = {
    if (transaction.governed.nonEmpty) InterlockMetrics.attempts.inc()
    passedVerdicts = PassedWinner.verdicts(info)
  }

  /** To be called when it has made a version. */
  def committed(): Unit =
    InterlockMetrics.committed(millisSince(transaction.txnStartTimeNs), passedVerdicts)

  /** To be called when it was rejected, before its files are deleted. */
  def rejected(
      policy: Policy,
      op: Operation,
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val table = transaction.table
    val rejected = new RejectedCommit(
      transaction,
      op,
      policy,
      judgedAgainst.orElse(
        // RESTORE and CLONE are rejected by the commit behind the version that they read.
        Try(winners.read(table.next)).toOption.filter(_ => transaction.governed.isEmpty)
      ),
      conflict,
      millisSince(transaction.txnStartTimeNs)
    )
    InterlockMetrics.rejected(rejected.rule)
    AuditTrail.write(table.log, transaction.metadata, rejected.record)
  }

  private def millisSince(nanos: Long): Long =
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos)
}
