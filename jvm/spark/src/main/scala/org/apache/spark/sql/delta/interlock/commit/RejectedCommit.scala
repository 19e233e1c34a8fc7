package org.apache.spark.sql.delta.interlock.commit

import java.time.Instant

import scala.util.Try

import io.interlock.rules._
import io.interlock.spark.audit.ConflictRecord
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.errors.InterlockConflict
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.{Author, CommitLog}

/** What is known of a commit that was rejected.
  *
  * @param winner
  *   the commit that it was judged against; none where Delta names none
  * @param millis
  *   since its transaction began
  * @param marksRows
  *   whether the statement writes deletion vectors as it scans
  */
final private[interlock] class RejectedCommit(
    statement: Statement,
    operation: DeltaOperations.Operation,
    policy: Policy,
    governed: Option[GovernedCommit],
    winner: Option[WinningCommitSummary],
    error: DeltaConcurrentModificationException,
    millis: Long,
    marksRows: => Boolean
) {
  import RejectedCommit._

  private val conflict: Conflict = error match {
    case ours: InterlockConflict if ours.conflict.winnerClass.nonEmpty => ours.conflict
    case ours: InterlockConflict =>
      ours.conflict.copy(winner = theWinner.orElse(ours.conflict.winner))
    case _ =>
      val kind = ConflictKind.byName(error.conflictType)
      Conflict(
        kind,
        policy.name,
        Operations.name(operation),
        governed.fold[OperationClass](OperationClass.Metadata)(_.operationClass),
        statement.table.snapshot.version,
        statement.table.name,
        statement.txnId,
        theWinner,
        why = s"${theWinner.fold("another commit")(_.toString)} ${kind.did}"
      )
  }

  def record: ConflictRecord = {
    val who = Author.of(statement.session)
    val raised = Option[Throwable](error)
    ConflictRecord.rejected(
      Instant.now,
      conflict,
      Map(
        "condition" -> raised.collect { case told: SparkThrowable => told.getCondition },
        "sqlState" -> raised.collect { case ours: InterlockConflict => ours.getSqlState },
        "message" -> Some(error.getMessage),
        "user" -> Some(who.user),
        "session" -> Some(who.session),
        "application" -> Some(who.application),
        "block" -> statement.ofBlock,
        "millis" -> Some(millis),
        "millisSaved" -> Some(conflict).filter(_.beforeWriting).flatMap(_ => lastWrite),
        "bytes" -> Some(statement.staged.bytes)
      )
    )
  }

  /** What rejected it: the policy's cell, or the kind of the conflict where no cell did. */
  def rule: String = conflict.rule.filter(_ => conflict.kind != ConflictKind.ConcurrentWrite)
    .getOrElse(conflict.kind.name)

  private def theWinner: Option[WinningCommit] = winner.map { commit =>
    val found = CommitTags.winner(commit.commitVersion, commit.commitInfo)
    governed.fold(found)(job =>
      found.copy(operationClass = Some(job.asWinner(commit).operationClass))
    )
  }

  /** How long the latest commit of this operation took after its scan, in milliseconds; with its
    * scan where the scan is what writes deletion vectors.
    */
  private def lastWrite: Option[Long] = Try {
    val commits = new CommitLog(statement.table.snapshot)
    val before = if (marksRows) Nil else BeforeWriting
    Iterator.iterate(statement.table.snapshot.version)(_ - 1).take(MostLooked)
      .flatMap(commits.info).filter(_.operation == operation.name)
      .flatMap(_.operationMetrics).filter(_.contains(Run)).nextOption()
      .map(metrics => metrics(Run).toLong - before.flatMap(metrics.get).map(_.toLong).sum)
      .filter(_ >= 0)
  }.toOption.flatten
}

private object RejectedCommit {

  /** How many versions are read for one of the same operation. */
  private val MostLooked = 20

  private val Run = "executionTimeMs"

  /** What Delta's operations measure of the time before they write. */
  private val BeforeWriting = Seq("scanTimeMs", "materializeSourceTimeMs")
}
