package org.apache.spark.sql.delta.interlock.transaction

import scala.util.control.NonFatal

import io.interlock.coordinator.CommitQueue
import io.interlock.rules.Conflict
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.errors.Conflicts.ConflictException
import io.interlock.spark.errors.{Conflicts, InterlockConflict}
import io.interlock.spark.properties.SessionPolicies
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, JudgingJob}
import org.apache.spark.sql.delta.interlock.log.MissedCommits
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{CurrentTransactionInfo, Serializable, WinningCommitSummary}

/** A statement that changes rows, before it has written any.
  *
  * @param changesData
  *   whether its commit is sure to change data; Delta judges one that changes none by a weaker level
  * @param marksRows
  *   whether it first writes deletion vectors, as it scans the files that it has selected
  * @param isConfined
  *   whether it reads and writes only in the partitions that its condition selects
  */
final private[transaction] case class Unwritten(
    op: Operation,
    changesData: Boolean,
    marksRows: Boolean,
    isConfined: Boolean
)

/** Finds out, before an UPDATE, DELETE or MERGE writes its files, whether it has lost already.
  *
  * It is judged as its commit will be, but by its reads so far, without actions, and only against
  * commits that are in the log. What the statement still reads and writes can only add overlaps,
  * and the log keeps its commits, so its commit would fail as well. Whatever else goes wrong here
  * is left to the commit, and so is what cannot be decided.
  *
  * @param commit
  *   the statement as it would commit if it had no actions
  * @param landed
  *   see [[JudgingRounds]]
  */
final private[transaction] class EarlyVerdict(
    transaction: OpenTransaction,
    statement: Unwritten,
    commit: GovernedCommit,
    queue: CommitQueue,
    landed: (WinningCommitSummary, Long, CurrentTransactionInfo) => Option[CurrentTransactionInfo]
) {
  private val table = transaction.table
  private val next = table.snapshot.version + 1
  private val winners = new WinnerReader(table, isCoordinated = false)
  val audit = new CommitAudit(transaction, winners)

  /** The conflict that the commit would raise; none if that is not certain.
    *
    * @param list
    *   lists the commits after the version that was read
    */
  def conflict(list: => Seq[FileStatus]): Option[ConflictException] =
    try {
      commit.refuseUnlessPermitted(table.name)
      val files = missed(list)
      if (files.isEmpty) None
      else lostAgainst(files).filter(_ => transaction.isSameTable && table.has(files.last))
        .map(raised)
    } catch { case NonFatal(failed) if !JudgingJob.isCancelled(failed) => None }

  private def raised(lost: Conflict): ConflictException = {
    def gate = new ClaimGate(transaction, queue, commit, soFar, Serializable)
    ClaimingStatement.current.foreach(_.tries(gate))
    Conflicts.raised(lost.copy(beforeWriting = true), SessionPolicies.readable)
  }

  private def lostAgainst(files: Seq[FileStatus]): Option[Conflict] = {
    val rounds = new JudgingRounds(transaction, commit, winners, audit, landed)
    val level = transaction.isolationOf(statement, commit)
    try {
      transaction.reads.uncounted(rounds.judge(soFar, next, files, level)): Unit
      None
    } catch {
      case lost: InterlockConflict =>
        Some(lost.conflict).filterNot(_.overlap.exists(_.undecided))
    }
  }

  /** The transaction without actions. Delta's checks need a commit time, whatever it is. */
  private def soFar: CurrentTransactionInfo = transaction.withoutActions(commit.operation)
    .copy(commitInfo = Some(CommitInfo.empty().copy(inCommitTimestamp = Some(0L))))

  /** The commits since the version that was read, as far as they are in the log. It is listed
    * unless this process made the last of them.
    */
  private def missed(list: => Seq[FileStatus]): Seq[FileStatus] = {
    transaction.startOverIfOther(queue, next)
    val view = queue.inMemory(next)
    val known = view.commits.takeWhile(_.isThere)
    if (view.reachesEnd) {
      winners.expect(new MissedCommits(table.log, known))
      known.map(_.file)
    } else {
      val files = list.zipWithIndex
        .takeWhile { case (file, index) => FileNames.deltaVersion(file) == next + index }.map(_._1)
      if (files.isEmpty || !transaction.isSameTable) Nil
      else {
        val learn = queue.learn(view.generation, _)
        winners.expect(new MissedCommits(table.log, known, files, learn))
        files
      }
    }
  }
}
