package org.apache.spark.sql.delta.interlock.commit

import java.time.Instant

import scala.util.Try

import io.interlock.rules.{ConflictKind, Policy}
import io.interlock.spark.audit.{RecordedCommit, Rejected, WinningVersion}
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.errors.InterlockConflict
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.{CommitLog, Committer}

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
    conflict: DeltaConcurrentModificationException,
    millis: Long,
    marksRows: => Boolean
) {
  import RejectedCommit._

  private val winnersInfo = winner.flatMap(_.commitInfo)
  private val ours = Option(conflict).collect { case ours: InterlockConflict => ours }
  private val byPolicy = ours.map(_.conflict)

  def record: Rejected = {
    val who = Committer.of(statement.session)
    val overlap = byPolicy.flatMap(_.overlap)
    Rejected(
      RecordedCommit(
        Instant.now,
        statement.txnId,
        operation = byPolicy.map(_.operation).orElse(Some(Operations.name(operation))),
        operationClass =
          byPolicy.map(_.operationClass).orElse(governed.map(_.operationClass)).map(_.name),
        policy = Some(policy.name),
        readVersion = Some(byPolicy.fold(statement.table.snapshot.version)(_.readVersion)),
        scope = byPolicy.map(_.scope),
        user = Some(who.user),
        millis = Some(millis),
        bytes = Some(statement.staged.bytes)
      ),
      table = Some(statement.table.name),
      winner = byPolicy.map(_.winnerVersion).orElse(winner.map(_.commitVersion)).map(lostTo),
      rule = byPolicy.map(_.rule),
      verdict = byPolicy.map(_.verdict.name),
      why = byPolicy.map(_.why),
      files = overlap.map(_.files),
      rows = overlap.map(_.rows),
      sourceRows = overlap.map(_.sourceRows),
      predicate = overlap.flatMap(_.predicate),
      undecided = overlap.exists(_.undecided),
      kind = Some(kind),
      condition = Option(conflict).collect { case told: SparkThrowable => told.getCondition },
      sqlState = ours.map(_.getSqlState),
      message = Some(conflict.getMessage),
      phase = byPolicy.flatMap(_.phase),
      millisSaved = byPolicy.filter(_.beforeWriting).flatMap(_ => lastWrite),
      session = Some(who.session),
      application = Some(who.application)
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

  /** Delta's name for the conflict, such as ConcurrentAppend. */
  private def kind: String = conflict.conflictType.stripSuffix("Conflict")

  /** What rejected it: the policy's cell, or the kind of the conflict where no cell did. */
  def rule: String = byPolicy.filter(_.kind != ConflictKind.ConcurrentWrite).fold(kind)(_.rule)

  private def lostTo(version: Long) = WinningVersion(
    version,
    byPolicy.flatMap(_.winnerOperation).orElse(winnersInfo.flatMap(Operations.name)),
    byPolicy.flatMap(_.winnerClass)
      .orElse(governed.zip(winner).map { case (job, commit) =>
        job.asWinner(commit).operationClass
      })
      .map(_.name)
      .orElse(winnersInfo.flatMap(_.tags).flatMap(_.get(CommitTags.Class))),
    winnersInfo.flatMap(_.txnId)
  )
}

private object RejectedCommit {

  /** How many versions are read for one of the same operation. */
  private val MostLooked = 20

  private val Run = "executionTimeMs"

  /** What Delta's operations measure of the time before they write. */
  private val BeforeWriting = Seq("scanTimeMs", "materializeSourceTimeMs")
}
