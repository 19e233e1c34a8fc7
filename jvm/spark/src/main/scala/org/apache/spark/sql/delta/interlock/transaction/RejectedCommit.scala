package org.apache.spark.sql.delta.interlock.transaction

import java.time.Instant

import io.interlock.rules.ConflictKind
import io.interlock.spark.audit.ConflictRecord
import io.interlock.spark.audit.ConflictRecord.Fact
import io.interlock.spark.commits.CommitTags
import io.interlock.spark.errors.InterlockConflict
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.Committer

/** What is known of a commit that was rejected.
  *
  * @param attempt
  *   none of RESTORE and CLONE
  * @param winner
  *   the commit that it was judged against; none where Delta names none
  * @param millis
  *   since its transaction began
  * @param bytes
  *   of data files that it had written
  */
final private[interlock] case class RejectedCommit(
    txnId: String,
    table: String,
    operation: DeltaOperations.Operation,
    policy: String,
    readVersion: Long,
    attempt: Option[GovernedCommit],
    winner: Option[WinningCommitSummary],
    conflict: DeltaConcurrentModificationException,
    millis: Long,
    bytes: Long
) {

  def record(spark: SparkSession): ConflictRecord = ConflictRecord(
    Map[String, Any](
      Fact.Outcome -> ConflictRecord.Rejected,
      Fact.Policy -> policy,
      Fact.LaterOperation -> operation.name,
      Fact.ReadVersion -> readVersion
    ) ++ attempt.map(Fact.LaterClass -> _.operationClass.name) ++
      ofWinner ++ ofConflict ++ ofCommitter(Committer.of(spark)) ++ Map[String, Any](
        Fact.Time -> Instant.now.toString,
        Fact.Attempt -> txnId,
        Fact.Table -> table,
        Fact.Kind -> kind,
        Fact.Message -> conflict.getMessage,
        Fact.Millis -> millis,
        Fact.Bytes -> bytes
      )
  )

  /** Delta's name for the conflict, such as ConcurrentAppend. */
  def kind: String = conflict.conflictType.stripSuffix("Conflict")

  /** What rejected it: the policy's cell, or the kind of the conflict where no cell did. */
  def rule: String = conflict match {
    case ours: InterlockConflict if kind != ConflictKind.ConcurrentWrite.name =>
      ConflictRecord(ours.facts).text(Fact.Rule).getOrElse(kind)
    case _ => kind
  }

  private def ofWinner: Map[String, Any] = winner.fold(Map.empty[String, Any]) { commit =>
    Map[String, Any](Fact.WinnerVersion -> commit.commitVersion) ++
      commit.commitInfo.map(Fact.EarlierOperation -> _.operation) ++
      commit.commitInfo.flatMap(_.txnId).map(Fact.WinnerAttempt -> _) ++
      attempt.map(_.asWinner(commit).operationClass.name)
        .orElse(commit.commitInfo.flatMap(_.tags).flatMap(_.get(CommitTags.Class)))
        .map(Fact.EarlierClass -> _)
  }

  private def ofConflict: Map[String, Any] = conflict match {
    case ours: InterlockConflict => ours.facts
    case deltas: SparkThrowable => Map(Fact.Condition -> deltas.getCondition)
    case _ => Map.empty
  }

  private def ofCommitter(who: Committer): Map[String, Any] = Map(
    Fact.User -> who.user,
    Fact.Session -> who.session,
    Fact.Application -> who.application
  )
}
