package org.apache.spark.sql.delta.interlock.statement

import scala.util.control.NonFatal

import io.interlock.rules.Conflict
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.errors.Conflicts.ConflictException
import io.interlock.spark.errors.{Conflicts, InterlockConflict}
import io.interlock.spark.properties.SessionPolicies
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.interlock.commit._
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, JudgingJob}
import org.apache.spark.sql.delta.{CurrentTransactionInfo, IsolationLevel}

/** Finds out, before an UPDATE, DELETE or MERGE writes its files, whether it has lost already.
  *
  * It is judged as its commit will be, but by its reads so far, without actions, and only against
  * commits that are in the log. What the statement still reads and writes can only add overlaps,
  * and the log keeps its commits, so its commit would fail as well. Whatever else goes wrong here
  * is left to the commit, and so is what cannot be decided.
  *
  * @param commit
  *   the statement as it would commit if it had no actions
  */
final private[statement] class EarlyVerdict(
    statement: Statement,
    commit: GovernedCommit,
    send: Send,
    marksRows: Boolean
) {
  private val table = statement.table
  private val queue = send.queue
  private val winners = new Winners(table, warns = false)
  val audit = new CommitAudit(statement, winners, table.snapshot.metadata, marksRows)

  /** The conflict that the commit would raise; none if that is not certain.
    *
    * @param reads
    *   the transaction's reads, without actions
    */
  def conflict(reads: CurrentTransactionInfo, level: IsolationLevel): Option[ConflictException] =
    try {
      commit.refuseUnlessPermitted(table.name)
      val attempt = Attempt(table.snapshot.version + 1, reads, level)
      val files = missed(attempt)
      for {
        lost <- lostAgainst(files, attempt)
        if table.isThere && files.lastOption.exists(table.has)
      } yield {
        def gate = new ClaimGate(statement, queue, commit, attempt)
        ClaimingStatement.current.foreach(_.tries(gate))
        Conflicts.raised(lost.copy(beforeWriting = true), SessionPolicies.readable)
      }
    } catch { case NonFatal(failed) if !JudgingJob.isCancelled(failed) => None }

  private def lostAgainst(files: Seq[FileStatus], attempt: Attempt): Option[Conflict] =
    try {
      val round = new Round(statement, commit, attempt.info.metadata, winners, audit)
      round.judge(attempt, files): Unit
      None
    } catch {
      case lost: InterlockConflict =>
        Some(lost.conflict).filterNot(_.overlap.undecided)
    }

  /** The commits since the version that was read, as far as they are in the log. It is listed
    * unless this process made the last of them.
    */
  private def missed(attempt: Attempt): Seq[FileStatus] = {
    val log = new QueuedLog(table, queue, send.client, attempt)
    if (log.isSame(attempt).contains(false)) queue.startOver()
    val view = queue.inMemory(attempt.next)
    if (view.reachesEnd) winners.ofQueue(view.commits.takeWhile(_.isThere))
    else {
      val files = log.listed(attempt)
      if (files.isEmpty || !table.isThere) Nil else winners.ofLog(files, queue, view)
    }
  }
}
