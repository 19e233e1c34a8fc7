package org.apache.spark.sql.delta.interlock.transaction

import java.time.Instant

import scala.annotation.tailrec
import scala.concurrent.duration._

import io.interlock.coordinator.Leases
import io.interlock.rules.{Cell, Conflict, ConflictKind, Overlap}
import io.interlock.spark.commits.{Operations, RunningChange}
import io.interlock.spark.errors.Conflicts
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta.CurrentTransactionInfo
import org.apache.spark.sql.delta.actions.RemoveFile
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit

/** Where a compaction makes way for jobs that have read files which it removes, by the policy's cells
  * with YIELD. It never makes way for another compaction, as no cell of those says so.
  */
final private[transaction] class Yielding(transaction: OpenTransaction, commit: GovernedCommit) {
  import Yielding._

  private val table = transaction.table
  private val cells = commit.policy.yields(commit.operationClass)

  /** Makes way for jobs of other processes. A note may be there a moment longer than its job, and
    * longer still if its process was killed: so this waits until it is clear that the job runs.
    */
  def toOthers(info: CurrentTransactionInfo): Unit = if (cells.nonEmpty) {
    val start = System.nanoTime
    @tailrec def look(): Unit = met(info, RunningTransactions.changesOfOthers(table.log)) match {
      case None =>
      case Some(lost) if (System.nanoTime - start).nanos > Patience => fail(lost)
      case _ =>
        Thread.sleep(BetweenLooks.toMillis)
        look()
    }
    look()
  }

  /** Makes way for jobs of this process. */
  def toOwn(info: CurrentTransactionInfo): Unit =
    if (cells.nonEmpty) met(info, RunningTransactions.changes(table.log)).foreach(fail)

  private def met(info: CurrentTransactionInfo, jobs: Seq[RunningChange]): Option[Conflict] = {
    val removed = info.actions.collect { case remove: RemoveFile => remove }
    val found = for {
      job <- jobs.iterator
      cell <- cells.find(cell => job.classes(cell.later))
      files = removed.filter(file => job.reads(file.path)) if files.nonEmpty
    } yield conflict(info, cell, job, files)
    found.nextOption()
  }

  private def conflict(
      info: CurrentTransactionInfo,
      cell: Cell,
      job: RunningChange,
      files: Seq[RemoveFile]
  ): Conflict = {
    val kind = ConflictKind.ConcurrentDeleteRead
    val why = s"${cell.earlier} makes way for ${cell.later}, here for a job of ${job.owner} that " +
      s"has been running since ${Instant.ofEpochMilli(job.since)}"
    Conflict(
      kind,
      commit.policy.name,
      cell.label,
      cell.verdict,
      winnerClass = None,
      commit.operationClass,
      winnerOperation = None,
      Operations.name(commit.operation),
      table.snapshot.version,
      winnerVersion = None,
      commit.scopeOf(files, info),
      table.name,
      info.txnId,
      why,
      Some(Overlap(kind, why, files.map(_.path).take(Overlap.FilesShown)))
    )
  }

  private def fail(lost: Conflict): Nothing =
    throw Conflicts.raised(lost, SessionPolicies.readable)
}

private[transaction] object Yielding {
  private val Patience = Leases.DeadAfter + 1.second
  private val BetweenLooks = 500.millis
}
