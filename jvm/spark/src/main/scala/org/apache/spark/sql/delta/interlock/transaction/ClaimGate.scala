package org.apache.spark.sql.delta.interlock.transaction

import java.util.UUID

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.control.NonFatal

import io.interlock.coordinator.{Causes, CommitQueue, TableLog}
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
  private var racesLost = 0
  private var turn: Option[Turn] = None
  private var patience: FiniteDuration = LongestTurns

  /** Waits while a claim of any process, or a turn of another one, holds the commit.
    *
    * @return
    *   whether it waited for a turn, so that others have committed meanwhile
    * @throws InterlockException
    *   INTERLOCK_AUTO_COMPACTION_SKIPPED if the statement would wait with its commit made
    */
  def await(): Boolean = {
    val asked = turn.filter(claims.ownTurns.contains)
    @tailrec def from(hasWaited: Boolean): Boolean = awaitClaims().first match {
      case Some(first) if patience > Duration.Zero =>
        refuseAutoCompaction(first.owner)
        awaitTurns()
        from(hasWaited = true)
      case _ => hasWaited
    }
    val hasWaited = from(hasWaited = false)
    // Its time begins when it is the first.
    if (hasWaited) asked.filter(turn.contains).foreach(put)
    hasWaited
  }

  /** @return
    *   what was found when no claim held the commit any more
    */
  private def awaitClaims(): Found =
    if (isImpatient) claims.look()
    else {
      var found = Found(Nil, Nil, Nil)
      def held = {
        found = claims.look()
        holding(found.claims)
      }
      isImpatient =
        claims.await(held, Claims.patience(by.session, Some(tableLog))) { claim =>
          refuseAutoCompaction(claim.owner)
          passTurn()
          logWarning(s"$described waits for ${Claims.shown(claim)}.")
        }.nonEmpty
      found
    }

  private def awaitTurns(): Unit = {
    val start = System.nanoTime
    def first = claims.look().first
    claims.await(first, Unremarkable.min(patience))(_ => ()).foreach(_ =>
      claims.await(first, patience - Unremarkable)(turn =>
        logWarning(s"$described waits for a commit of ${turn.owner}, which others have overtaken.")
      )
    )
    patience -= (System.nanoTime - start).nanos
  }

  /** @throws InterlockException
    *   INTERLOCK_AUTO_COMPACTION_SKIPPED if the commit is one
    */
  private def refuseAutoCompaction(owner: String): Unit =
    if (isAutoCompaction) throw InterlockException.autoCompactionSkipped(table.name, owner)

  private def described = s"${Operations.name(commit.operation)} on ${table.name}"

  private def isAutoCompaction = commit.operation match {
    case optimize: DeltaOperations.Optimize => optimize.auto
    case _ => false
  }

  /** Lets the commits of other processes wait for those of this one, if they have overtaken this
    * commit many times since its last turn. An auto compaction is not worth that.
    */
  def loseRace(): Unit = {
    racesLost += 1
    if (racesLost >= MostRacesLost && !isAutoCompaction && !hasTurn) {
      racesLost = 0
      put(Turn(UUID.randomUUID.toString, table.snapshot.metadata.id, since, by.name))
    }
  }

  private def put(taken: Turn): Unit =
    try {
      claims.put(taken, LongestTurn)
      turn = Some(taken)
    } catch {
      case NonFatal(failed) if !Causes.areInterrupt(failed) =>
        logWarning(s"${table.name} cannot be held for a commit.", failed)
    }

  /** Whether a commit of this process has a turn, so that those of others wait. */
  def hasTurn: Boolean = claims.ownTurns.nonEmpty

  /** Lets them go on, if they wait. */
  def passTurn(): Unit = {
    try turn.foreach(taken => Claims.release(taken.id))
    catch { case NonFatal(failed) => logWarning(s"${table.name} stays held for a while.", failed) }
    turn = None
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

private object ClaimGate {
  private val MostRacesLost = 20

  /** After so long the other processes go on, until the commit has lost as often again. */
  private val LongestTurn = 30.seconds

  /** After so long a commit waits for the turns of others no more. */
  private val LongestTurns = 2.minutes

  /** How long a commit waits for them without a word. */
  private val Unremarkable = 5.seconds
}
