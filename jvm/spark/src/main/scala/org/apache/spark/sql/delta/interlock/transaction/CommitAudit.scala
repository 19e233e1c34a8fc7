package org.apache.spark.sql.delta.interlock.transaction

import java.time.Instant
import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.util.Try

import io.interlock.rules.Policy
import io.interlock.spark.audit._
import io.interlock.spark.properties.{SessionPolicies, TraceSettings}
import org.apache.spark.interlock.metrics.InterlockMetrics
import org.apache.spark.interlock.ui.CommitEvents
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.interlock.judging.PassedWinner

/** The record of a commit and of the winners that it was judged against: in its own tags if it
  * passed them, beside the log if it was rejected, and in Spark's metrics and UI.
  */
final private[transaction] class CommitAudit(
    transaction: OpenTransaction,
    winners: WinnerReader
) extends Logging {
  private var judgedAgainst: Option[WinningCommitSummary] = None
  private var sentInfo: Option[CommitInfo] = None
  private var passedVerdicts: Seq[String] = Nil

  /** The last winners that it was judged against, where its explanation is shown. */
  private var recent: Seq[WinningVersion] = Vector.empty

  /** To be called before the commit is judged against a winner. */
  def judging(winner: WinningCommitSummary): Unit = {
    judgedAgainst = Some(winner)
    if (CommitEvents.areShown(transaction.session.sparkContext))
      recent = (recent ++ winner.commitInfo.map(WinningVersion.of(winner.commitVersion, _)))
        .takeRight(PassedWinner.MostNamed)
  }

  /** Runs a round of judging, which gives the commit as it stands after it and whom it passed. */
  def round(
      judge: => (CurrentTransactionInfo, Seq[PassedWinner])
  ): CurrentTransactionInfo = {
    judgedAgainst = None
    val start = System.nanoTime()
    val (resolved, passed) =
      try transaction.times.in(TimedPhase.Judge)(judge)
      finally InterlockMetrics.judgeMillis.update(millisSince(start))
    judgedAgainst = None
    if (passed.isEmpty) resolved
    else PassedWinner.tag(resolved, passed, millisSince(start), transaction.staged.bytes)
  }

  /** To be called when the commit is sent. */
  def sent(info: CurrentTransactionInfo): Unit = {
    if (transaction.governed.nonEmpty) InterlockMetrics.attempts.inc()
    sentInfo = info.commitInfo
    passedVerdicts = PassedWinner.verdicts(info)
  }

  /** To be called when it has made a version, before Delta's hooks, which may compact the table. */
  def committed(version: Long): Unit = {
    val phases = transaction.times.all
    InterlockMetrics.committed(millisSince(transaction.txnStartTimeNs), passedVerdicts, phases)
    if (TraceSettings.isOn(transaction.session.conf.getOption(_))) logWarning(
      s"Version $version of ${transaction.table.name} by ${sentInfo.fold("")(_.operation)}: " +
        s"read version ${transaction.snapshot.version}, passed ${passedVerdicts.size} commits, " +
        phases.map { case (phase, nanos) => s"$phase ${millis(nanos)} ms" }.mkString(", ")
    )
    show(sentInfo.flatMap(Rebased.of(version, _, Instant.now)))
  }

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
        // RESTORE and CLONE are rejected by the commit after the version that they read.
        Try(winners.read(table.next)).toOption.filter(_ => transaction.governed.isEmpty)
      ),
      conflict,
      millisSince(transaction.txnStartTimeNs)
    )
    InterlockMetrics.rejected(rejected.rule)
    lazy val record = rejected.record
    AuditTrail.write(table.log, transaction.metadata, record)
    show(Some(record))
  }

  private def show(record: => Option[ConflictRecord]): Unit =
    CommitEvents.post(transaction.session.sparkContext, transaction.table.name, record)(
      Explanation(_, transaction.metadata.partitionColumns, recent, SessionPolicies.readable).text
    )

  private def millis(nanos: Long) = "%.1f".formatLocal(Locale.ROOT, nanos / 1e6)

  private def millisSince(nanos: Long): Long =
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos)
}
