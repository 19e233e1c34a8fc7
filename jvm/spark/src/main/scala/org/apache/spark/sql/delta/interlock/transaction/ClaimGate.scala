package org.apache.spark.sql.delta.interlock.transaction

import scala.concurrent.duration._
import scala.util.control.NonFatal

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
  import ClaimGate._

  private val table = transaction.table
  private val tableLog = TableLog(table.log.logPath, table.conf)
  private val claims = new Claims(tableLog, table.snapshot.metadata.id, table.name)
  private lazy val by = Committer.of(transaction.session).asClaimant(transaction.session)
  private lazy val asCommit = commit.asCommit(info)
  private lazy val isBlindAppend = commit.operationClass == OperationClass.Append &&
    level != Serializable && info.readPredicates.isEmpty && info.readFiles.isEmpty &&
    !info.readWholeTable

  private var isImpatient = false
  private val since = System.currentTimeMillis()
  private var turn: Option[String] = None

  /** Waits while a claim of any process holds the commit.
    *
    * @throws InterlockException
    *   INTERLOCK_AUTO_COMPACTION_SKIPPED if the statement would wait with its commit made
    */
  def await(): Unit = if (!isImpatient)
    isImpatient =
      claims.await(holding(claims.all()), Claims.patience(by.session, Some(tableLog))) { claim =>
        def text =
          s"${Operations.name(commit.operation)} on ${table.name} waits for ${Claims.shown(claim)}."
        if (claim.isTurn) logInfo(text)
        else if (isAutoCompaction)
          throw InterlockException.autoCompactionSkipped(table.name, claim.owner)
        else logWarning(text)
      }.nonEmpty

  private def isAutoCompaction = commit.operation match {
    case optimize: DeltaOperations.Optimize => optimize.auto
    case _ => false
  }

  /** Lets the commits of other processes wait for this one, which they have overtaken many times. */
  def takeTurn(): Unit = {
    passTurn()
    try turn = Some(claims.takeTurn(by, since, commit.claimed(info, false), LongestTurn).id)
    catch {
      case NonFatal(failed) => logWarning(s"${table.name} cannot be held for a commit.", failed)
    }
  }

  /** Lets them go on, if they wait. */
  def passTurn(): Unit = {
    try turn.foreach(Claims.release)
    catch { case NonFatal(failed) => logWarning(s"${table.name} stays held for a while.", failed) }
    turn = None
  }

  /** Whether a claim of this process holds it. */
  def isClosed: Boolean = !isImpatient && holding(claims.own).nonEmpty

  private def holding(found: Seq[Claim]): Option[Claim] = {
    val (mine, others) = found.filter(_.isGranted).partition(isMine)
    others.find(claim =>
      !mine.exists(_.precedes(claim)) &&
        (claim.isTurn || claim.scope.holds(commit.policy, asCommit, isBlindAppend))
    )
  }

  private def isMine(claim: Claim) = claim.session.contains(by.session) ||
    ClaimingStatement.current.exists(_.holds(claim)) ||
    claim.isTurn && claims.own.exists(_.id == claim.id) // commits of one process have an order

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

private object ClaimGate {

  /** After so long the other processes go on, whatever became of the commit. */
  private val LongestTurn = 30.seconds
}
