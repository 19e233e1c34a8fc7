package org.apache.spark.sql.delta.interlock.commit

import scala.concurrent.duration._
import scala.util.control.NonFatal

import io.interlock.coordinator.{Causes, CommitQueue, TableLog}
import io.interlock.rules.OperationClass
import io.interlock.spark.claims._
import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.InterlockException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.Author
import org.apache.spark.sql.delta.{DeltaOperations, Serializable}

/** Where a commit waits for the claims of others, and where a statement that has lost claims what it
  * tried to commit.
  */
final private[interlock] class ClaimGate(
    statement: Statement,
    queue: CommitQueue,
    commit: GovernedCommit,
    attempt: Attempt
) extends Claimable
    with Logging {
  import ClaimGate._
  import attempt.{info, level}

  private val table = statement.table
  private val tableLog = TableLog(table.log.logPath, table.conf)
  private val claims = new Claims(tableLog, table.snapshot.metadata.id, table.name)
  private lazy val by = Author.of(statement.session).asClaimant(statement.session)
  private lazy val asCommit = commit.asCommit(info)
  private lazy val isBlindAppend = commit.operationClass == OperationClass.Append &&
    level != Serializable && info.readPredicates.isEmpty && info.readFiles.isEmpty &&
    !info.readWholeTable

  private var isImpatient = false
  private val since = System.currentTimeMillis()
  private var racesLost = 0
  private var turn: Option[Claim] = None

  /** Waits while a claim of any process holds the commit. It gives up its own turn for the claim of a
    * job.
    *
    * @return
    *   whether it has waited, so that others may have committed meanwhile
    * @throws InterlockException
    *   INTERLOCK_AUTO_COMPACTION_SKIPPED if the statement would wait with its commit made
    */
  def await(): Boolean = !isImpatient && {
    var hasWaited = false
    val patience = Claims.patience(by.session, Some(tableLog))
    isImpatient = claims.await(holding(claims.all()), patience) { claim =>
      if (isAutoCompaction) throw InterlockException.autoCompactionSkipped(table.name, claim.owner)
      hasWaited = true
      val waits = s"$described waits for ${Claims.shown(claim)}."
      if (claim.isTurn) logInfo(waits)
      else {
        passTurn()
        logWarning(waits)
      }
    }.exists(!_.isTurn)
    hasWaited
  }

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
      try turn = Some(claims.takeTurn(by.name, since, LongestTurn))
      catch {
        case NonFatal(failed) if !Causes.areInterrupt(failed) =>
          logWarning(s"${table.name} cannot be held for a commit.", failed)
      }
    }
  }

  /** Whether a commit of this process has a turn, so that those of others wait. */
  def hasTurn: Boolean = claims.own.exists(_.isTurn)

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
      !mine.exists(_.precedes(claim)) && claim.holds(commit.policy, asCommit, isBlindAppend)
    )
  }

  private def isMine(claim: Claim) = claim.session.exists(Set(by.session, Claims.Process)) ||
    ClaimingStatement.current.exists(_.holds(claim))

  override def path: String = tableLog.path.toString

  /** Granted when no commit is under way that has not waited for the claim, so that the next run
    * reads all commits that did not wait.
    */
  override def claim(most: FiniteDuration): String = claims.take(
    by,
    isOfSession = false,
    commit.claimed(info),
    commit.policy,
    most,
    Claims.patience(by.session)
  )(queue.between(_)).id
}

private object ClaimGate {
  private val MostRacesLost = 20

  /** After so long the other processes go on, until the commit has lost as often again. */
  private val LongestTurn = 2.minutes
}
