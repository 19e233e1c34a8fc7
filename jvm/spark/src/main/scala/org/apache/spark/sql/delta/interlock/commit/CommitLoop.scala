package org.apache.spark.sql.delta.interlock.commit

import scala.annotation.tailrec

import io.interlock.coordinator.CommitQueue
import org.apache.spark.sql.delta.DeltaConcurrentModificationException
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.table.ReadTable

/** Commits a statement under the policy of its table:
  *
  *   1. It waits for its turn in the queue. Meanwhile it is judged against the commits that others
  *      make.
  *   1. With the turn, it is judged against all other commits that come before it, also those of this
  *      process that are still on their way to the log.
  *   1. It is handed in, and the turn passes on. The store answers.
  *   1. If another process has the version, or a commit on its way has failed, it begins again behind
  *      the last winner that is in the log.
  *
  * A commit that loses against a winner ends with the conflict, unless that winner has failed itself.
  *
  * @param first
  *   the commit before it is judged
  */
final private[interlock] class CommitLoop(
    statement: Statement,
    commit: GovernedCommit,
    private[commit] val first: Attempt,
    winners: Winners,
    audit: CommitAudit,
    private[commit] val send: Send
) {
  val queue: CommitQueue = send.queue
  private[commit] def table: ReadTable = statement.table
  private[commit] val log = new QueuedLog(statement.table, queue, send.client, first)
  private val round = new Round(statement, commit, first.info.metadata, winners, audit)
  private[commit] val waiting = new Waiting(statement, queue, commit, first, log)

  /** @return
    *   the commit, which is in the log
    * @throws DeltaConcurrentModificationException
    *   if it loses
    */
  def run(): Made =
    try run(first, tries = 1)
    finally waiting.end()

  @tailrec private def run(attempt: Attempt, tries: Int): Made = {
    log.startOverIfOther(attempt)
    val turn = waiting.takeTurn(attempt)(judgeAhead)
    val (judged, made) =
      try {
        val judged = judgeAll(log.current(turn))
        judged -> send(judged)
      } finally queue.passTurn()
    made match {
      case Some(committed) => committed
      case None =>
        waiting.afterLostRace(tries)
        run(log.current(judged.lastInLog), tries + 1)
    }
  }

  /** Judges a commit without actions, which makes no version. */
  def check(): Unit = {
    statement.table.refuseIfGone()
    round.judge(first, log.listed(first)): Unit
  }

  /** Judges the commit, while it waits for its turn, against new commits in the log. */
  private[commit] def judgeAhead(attempt: Attempt): Attempt = {
    val found = queue.settled(attempt.next)
    if (found.isEmpty) attempt
    else {
      val isOfThisLog = log.isSame(attempt).contains(true)
      val now = if (isOfThisLog) attempt else log.current(attempt)
      if (now ne attempt) now
      else {
        if (!isOfThisLog) statement.table.refuseIfGone()
        round.judge(attempt, winners.ofQueue(found))
      }
    }
  }

  /** Judges the commit, which has the turn, against all others before it. */
  @tailrec private[commit] def judgeAll(attempt: Attempt): Attempt = {
    if (queue.isTaken(attempt.next)) log.startOverIfOther(attempt)
    val view = queue.view(attempt.next)
    if (attempt.isOutdated(view.generation)) judgeAll(log.current(attempt.lastInLog))
    else {
      val now = attempt.copy(generation = Some(view.generation))
      if (!queue.isTaken(now.next)) now
      else judgeAll(behind(view, now).getOrElse(log.current(now.lastInLog)))
    }
  }

  /** The commit behind those that the queue knows, or else behind those in the log; None if it lost
    * against one that has failed.
    */
  private def behind(view: CommitQueue.View, attempt: Attempt): Option[Attempt] = {
    val files =
      if (view.reachesEnd) winners.ofQueue(view.commits)
      else {
        statement.table.refuseIfGone()
        statement.times.in(TimedPhase.Winners)(winners.ofLog(log.listed(attempt), queue, view))
      }
    // The log ends before the commits that the queue knows.
    if (files.isEmpty && !view.reachesEnd) queue.startOver()
    val (there, onTheirWay) = files.span(_.getLen > 0)
    try Some(round.judge(round.judge(attempt, there), onTheirWay))
    catch {
      case _: DeltaConcurrentModificationException if !queue.isSettled(view.generation) => None
    }
  }
}
