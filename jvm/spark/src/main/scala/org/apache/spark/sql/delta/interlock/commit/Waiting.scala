package org.apache.spark.sql.delta.interlock.commit

import scala.annotation.tailrec

import io.interlock.coordinator.CommitQueue
import io.interlock.spark.claims.ClaimingStatement
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.CheckpointLag

/** Where a commit waits: for claims of other jobs, for its turn in the queue, for a checkpoint that
  * is long due, and after a race that it has lost.
  */
final private[interlock] class Waiting(
    statement: Statement,
    queue: CommitQueue,
    commit: GovernedCommit,
    first: Attempt,
    log: QueuedLog
) {
  private val gate = new ClaimGate(statement, queue, commit, first)
  // Tells a statement that may run again what it claims if this commit loses.
  ClaimingStatement.current.foreach(_.tries(gate))

  /** Waits for the turn.
    *
    * @param judgeAhead
    *   judges the attempt, while it waits, against new commits in the log
    * @return
    *   the attempt behind these commits
    */
  def takeTurn(attempt: Attempt)(judgeAhead: Attempt => Attempt): Attempt =
    statement.times.in(TimedPhase.Turn)(turn(attempt)(judgeAhead))

  @tailrec private def turn(attempt: Attempt)(judgeAhead: Attempt => Attempt): Attempt = {
    val now = inQueue(behindClaims(attempt))(judgeAhead)
    if (!isClosed) now
    else {
      queue.passTurn()
      turn(now)(judgeAhead)
    }
  }

  /** Waits for claims of other jobs. */
  def behindClaims(attempt: Attempt): Attempt = if (gate.await()) caughtUp(attempt) else attempt

  /** Waits for the turn in the queue. */
  def inQueue(attempt: Attempt)(judgeAhead: Attempt => Attempt): Attempt = {
    var now = attempt
    def isAhead = {
      val before = now
      now = judgeAhead(before)
      now.next > before.next
    }
    queue.takeTurn(() => isAhead, () => isAheadOfCheckpoints(now))
    now
  }

  /** The attempt when others may have committed; the queue reads their commits. */
  private def caughtUp(attempt: Attempt): Attempt = {
    log.startOverIfOther(attempt)
    val now = log.current(attempt)
    queue.catchUp(now.next)
    now
  }

  private def isAheadOfCheckpoints(attempt: Attempt): Boolean = {
    val last = attempt.next - 1
    CheckpointLag.isTooLong(statement.session, statement.table.snapshot, last, queue.isTaken)
  }

  /** Whether a claim was made while it waited for the turn; if that fails, the turn passes on. */
  def isClosed: Boolean =
    try gate.isClosed
    catch {
      case failed: Throwable =>
        queue.passTurn()
        throw failed
    }

  /** @param tries
    *   how often the commit was tried so far
    */
  def afterLostRace(tries: Int): Unit = statement.times.in(TimedPhase.Turn) {
    val isRace = !queue.isTakingTurns
    if (isRace) gate.loseRace()
    Backoff
      .pause(statement.session, statement.table.name, tries, isRace = isRace && !gate.hasTurn)
  }

  /** To be called when the commit is made or has lost. */
  def end(): Unit = gate.passTurn()
}
