package org.apache.spark.sql.delta.interlock

import java.util.concurrent.TimeUnit

import scala.util.Try

import io.delta.storage.commit.Commit
import io.interlock.rules.Policy
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.interlock.InterlockMetrics
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.util.FileNames

/** A transaction that leaves a record of what it met: in its commit's tags where it passed others,
  * beside the log where it was rejected, and in Spark's metrics.
  */
abstract private[interlock] class AuditedTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot
) extends CoordinatedTransaction(deltaLog, catalogTable, snapshot) {

  protected val staged: StagedFiles = new StagedFiles(deltaLog)

  /** What is committed, where a policy judges it. */
  protected def attempt: Option[PolicedAttempt]

  /** The commit that the attempt is being judged against. */
  protected var judging: Option[WinningCommitSummary] = None

  /** Those of the try that is under way. */
  private var passedVerdicts: Seq[String] = Nil

  /** Runs a round of judging, which gives the attempt as it stands after it and whom it passed. */
  protected def audited(
      round: => (CurrentTransactionInfo, Seq[PassedWinner])
  ): CurrentTransactionInfo = {
    val start = System.nanoTime()
    val (resolved, passed) =
      try round
      finally InterlockMetrics.judgeMillis.update(millisSince(start))
    judging = None
    if (passed.isEmpty) resolved
    else
      PassedWinner.tag(resolved, passed, Committer.of(spark).user, millisSince(start), staged.bytes)
  }

  /** To be called when the attempt has made a version. */
  protected def auditCommit(): Unit =
    InterlockMetrics.committed(millisSince(txnStartTimeNs), passedVerdicts)

  /** To be called when the attempt was rejected, before its files are deleted. */
  protected def auditRejection(
      policy: Policy,
      op: Operation,
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val rejected = RejectedCommit(
      txnId,
      tableName,
      op,
      policy.name,
      snapshot.version,
      attempt,
      judging.orElse(Try(winner(next)).toOption.filter(_ => attempt.isEmpty)),
      conflict,
      millisSince(txnStartTimeNs),
      staged.bytes
    )
    InterlockMetrics.rejected(rejected.rule)
    AuditTrail.write(deltaLog, metadata, rejected.record(spark))
  }

  override protected def writeCommitFile(
      attemptVersion: Long,
      lines: Iterator[String],
      info: CurrentTransactionInfo
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) = {
    if (attempt.nonEmpty) InterlockMetrics.attempts.inc()
    passedVerdicts = PassedWinner.verdicts(info)
    super.writeCommitFile(attemptVersion, lines, info)
  }

  /** The commit behind the version that was read, which rejects RESTORE and CLONE. */
  private def next: FileStatus = {
    val file = FileNames.unsafeDeltaFile(deltaLog.logPath, snapshot.version + 1)
    file.getFileSystem(deltaLog.newDeltaHadoopConf()).getFileStatus(file)
  }

  private def millisSince(nanos: Long): Long =
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos)
}
