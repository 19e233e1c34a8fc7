package org.apache.spark.sql.delta.interlock.commit

import java.time.Instant
import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.util.Try

import io.interlock.rules.{Policy, WinningCommit}
import io.interlock.spark.audit._
import io.interlock.spark.commits.CommitTags
import io.interlock.spark.properties.{SessionPolicies, Setting}
import org.apache.spark.interlock.metrics.InterlockMetrics
import org.apache.spark.interlock.ui.CommitEvents
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{CommitInfo, Metadata}
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, PassedWinner}

/** The record of a commit and of the winners that it was judged against: in its own tags if it
  * passed them, beside the log if it was rejected, and in Spark's metrics and UI.
  */
final private[interlock] class CommitAudit(
    statement: Statement,
    winners: Winners,
    metadata: => Metadata,
    marksRows: => Boolean
) extends Logging {
  private var judgedAgainst: Option[WinningCommitSummary] = None
  private var sentInfo: Option[CommitInfo] = None
  private var passedVerdicts: Seq[String] = Nil

  /** The last winners that it was judged against, where its explanation is shown. */
  private var recent: Seq[WinningCommit] = Vector.empty

  /** To be called before the commit is judged against a winner. */
  def judging(winner: WinningCommitSummary): Unit = {
    judgedAgainst = Some(winner)
    if (CommitEvents.areShown(statement.session.sparkContext))
      recent = (recent :+ CommitTags.winner(winner.commitVersion, winner.commitInfo))
        .takeRight(PassedWinner.MostNamed)
  }

  /** Runs a round of judging, which gives the commit as it stands after it and whom it passed. */
  def round(judge: => (Attempt, Seq[PassedWinner])): Attempt = {
    judgedAgainst = None
    val start = System.nanoTime()
    val (behind, passed) =
      try statement.times.in(TimedPhase.Judge)(judge)
      finally InterlockMetrics.judgeMillis.update(millisSince(start))
    judgedAgainst = None
    if (passed.isEmpty) behind
    else
      behind.copy(info =
        PassedWinner.tag(behind.info, passed, millisSince(start), statement.staged.bytes)
      )
  }

  /** To be called when a commit that a policy governs is sent. */
  def sent(info: CurrentTransactionInfo): Unit = {
    InterlockMetrics.attempts.inc()
    sentInfo = info.commitInfo
    passedVerdicts = PassedWinner.verdicts(info)
  }

  /** To be called when it has made a version, before Delta's hooks, which may compact the table. */
  def committed(version: Long): Unit = {
    val phases = statement.times.all
    InterlockMetrics.committed(millisSince(statement.startNanos), passedVerdicts, phases)
    if (Setting.Trace.in(statement.session.conf.getOption(_)).contains(true)) logWarning(
      s"Version $version of ${statement.table.name} by ${sentInfo.fold("")(_.operation)}: " +
        s"read version ${statement.table.snapshot.version}, passed ${passedVerdicts.size} commits, " +
        phases.map { case (phase, nanos) => s"$phase ${millis(nanos)} ms" }.mkString(", ")
    )
    show(sentInfo.flatMap(ConflictRecord.made(version, _, Instant.now)))
  }

  /** To be called when it was rejected, before its files are deleted.
    *
    * @param commit
    *   none of RESTORE and CLONE, which are not judged
    */
  def rejected(
      policy: Policy,
      op: Operation,
      commit: Option[GovernedCommit],
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val table = statement.table
    def next = table.commit(table.snapshot.version + 1)
    val rejected = new RejectedCommit(
      statement,
      op,
      policy,
      commit,
      judgedAgainst.orElse(
        // RESTORE and CLONE are rejected by the commit after the version that they read.
        Try(winners.read(next)).toOption.filter(_ => commit.isEmpty)
      ),
      conflict,
      millisSince(statement.startNanos),
      marksRows
    )
    InterlockMetrics.rejected(rejected.rule)
    lazy val record = rejected.record
    AuditTrail.write(table.log, metadata, record)
    show(Some(record))
  }

  private def show(record: => Option[ConflictRecord]): Unit =
    CommitEvents.post(statement.session.sparkContext, statement.table.name, record)(
      Explanation(_, metadata.partitionColumns, recent, SessionPolicies.readable).text
    )

  private def millis(nanos: Long) = "%.1f".formatLocal(Locale.ROOT, nanos / 1e6)

  private def millisSince(nanos: Long): Long =
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos)
}
