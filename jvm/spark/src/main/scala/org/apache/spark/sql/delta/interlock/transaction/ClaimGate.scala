package org.apache.spark.sql.delta.interlock.transaction

import scala.concurrent.duration.FiniteDuration

import io.interlock.coordinator.{CommitQueue, TableLog}
import io.interlock.rules.OperationClass
import io.interlock.spark.claims._
import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.InterlockException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.Committer
import org.apache.spark.sql.delta.{
  CurrentTransactionInfo,
  DeltaOperations,
  IsolationLevel,
  Serializable
}

/** Where a commit waits for the claims of others, and where a statement that has lost claims what it
  * tried to commit.
  */
final private[transaction] class ClaimGate(
    transaction: OpenTransaction,
    queue: CommitQueue,
    commit: GovernedCommit,
    info: CurrentTransactionInfo,
    level: IsolationLevel
) extends Claimable
    with Logging {
  private val table = transaction.table
  private val tableLog = TableLog(table.log.logPath, table.conf)
  private val claims = new Claims(tableLog, table.snapshot.metadata.id, table.name)
  private lazy val by = Committer.of(transaction.session).asClaimant(transaction.session)
  private lazy val asCommit = commit.asCommit(info)
  private lazy val isBlindAppend = commit.operationClass == OperationClass.Append &&
    level != Serializable && info.readPredicates.isEmpty && info.readFiles.isEmpty &&
    !info.readWholeTable

  private var isImpatient = false

  /** Waits while a claim of any process holds the commit.
    *
    * @throws InterlockException
    *   INTERLOCK_AUTO_COMPACTION_SKIPPED if the statement would wait with its commit made
    */
  def await(): Unit = if (!isImpatient)
    isImpatient =
      claims.await(holding(claims.all()), Claims.patience(by.session, Some(tableLog))) { claim =>
        if (isAutoCompaction)
          throw InterlockException.autoCompactionSkipped(table.name, claim.owner)
        logWarning(
          s"${Operations.name(commit.operation)} on ${table.name} waits for ${Claims.shown(claim)}."
        )
      }.nonEmpty

  private def isAutoCompaction = commit.operation match {
    case optimize: DeltaOperations.Optimize => optimize.auto
    case _ => false
  }

  /** Whether a claim of this process holds it. */
  def isClosed: Boolean = !isImpatient && holding(claims.own).nonEmpty

  private def holding(found: Seq[Claim]): Option[Claim] = {
    val (mine, others) = found.filter(_.isGranted).partition(isMine)
    others.find(claim =>
      !mine.exists(_.precedes(claim)) && claim.scope.holds(commit.policy, asCommit, isBlindAppend)
    )
  }

  private def isMine(claim: Claim) = claim.session.contains(by.session) ||
    ClaimingStatement.current.exists(_.holds(claim))

  /** Granted when no commit is under way that has not waited for the claim, so that the next run
    * reads all commits that did not wait.
    */
  override def claim(most: FiniteDuration): String = claims.take(
    by,
    isOfSession = false,
    commit.claimed(info, transaction.isConfined && !transaction.reads.areUntracked),
    commit.policy,
    most,
    Claims.patience(by.session)
  )(queue.between(_)).id
}
