package org.apache.spark.sql.delta.interlock.transaction

import java.io.{FileNotFoundException, IOException}
import java.nio.file.FileAlreadyExistsException

import scala.util.control.NonFatal
import scala.util.{Success, Try}

import io.interlock.coordinator.{Causes, CommitUnknownException, CoordinatorException}
import io.interlock.rules.{OperationClass, Policy}
import io.interlock.spark.commits.Operations
import io.interlock.spark.compaction.FailedCompaction
import io.interlock.spark.errors._
import org.apache.spark.sql.delta.DeltaOperations.{Operation, OptimizeOrReorg}
import org.apache.spark.sql.delta.actions.{Action, RemoveFile}
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.transaction.CommitState.Made
import org.apache.spark.sql.delta.{ConcurrentWriteException, DeltaConcurrentModificationException}
import org.apache.spark.sql.functions.col

/** What a statement raises whose commit failed: it leaves nothing behind, or says what it leaves. A
  * conflict under a policy is recorded.
  */
final private[transaction] class CommitFailures(
    transaction: OpenTransaction,
    rules: TableRules,
    audit: CommitAudit
) {
  private val table = transaction.table
  private val staged = transaction.staged

  /** Runs a commit to a table that gets its first policy by it: Delta makes it, and does not say what
    * became of one that failed. The log is asked whose the version is.
    */
  def alone[A](version: Long)(commit: => A): A =
    try commit
    catch {
      case failed: Throwable
          if !failed.isInstanceOf[VirtualMachineError] &&
            rules.isCoordinated(transaction.metadata) =>
        table.committerOf(version) match {
          case Success(Some(txnId)) if txnId == transaction.txnId =>
            transaction.state = Made
            throw ownVersion(version, failed)
          case Success(None) if table.isLocal || !mayArrive(failed) => throw failed
          case Success(Some(_)) => throw failed
          case _ =>
            val log = table.log.logPath.toString
            throw new CommitUnknownException(log, version, transaction.txnId, failed)
        }
    }

  /** Delta would take its own version for another's, if it was told that it is there. */
  private def ownVersion(version: Long, failed: Throwable): Throwable = failed match {
    case _: FileAlreadyExistsException | _: ConcurrentWriteException =>
      new IOException(s"Version $version is there already, by this statement.", failed)
    case _ => failed
  }

  /** Whether the storage may yet make a version that is not there. */
  private def mayArrive(failed: Throwable): Boolean = Causes.of(failed).exists {
    case _: IOException | _: InterruptedException => true
    case _ => false
  }

  /** What to raise where a commit to a table with a coordinator has failed.
    *
    * @param actions
    *   what the transaction wanted to commit
    */
  def raised(op: Operation, actions: Seq[Action], failed: Throwable): Throwable = failed match {
    // Hooks that run after the commit may fail as well: then the files are live.
    case _ if transaction.isMade => behindCommit(op, failed)
    case unknown: CommitUnknownException =>
      CommitStateUnknownException.of(table.name, Operations.name(op), unknown)
    case _: VirtualMachineError => failed
    case conflict: DeltaConcurrentModificationException => lost(op, actions, conflict)
    case CommitsGone(conflict) => lost(op, actions, conflict)
    case _ => definite(op, failed, left = staged.deleteAll(actions, ofNewTable = table.isNew))
  }

  private def behindCommit(op: Operation, failed: Throwable): Throwable =
    StorageFault.innermost(failed).fold(failed)(reason =>
      InterlockException.failedAfterCommit(
        table.name,
        Operations.name(op),
        transaction.txnId,
        reason,
        failed
      )
    )

  /** The same for RESTORE and CLONE, which any commit since the version that was read rejects. */
  def raisedByLarge(op: Operation, failed: Throwable): Throwable = raised(op, Nil, failed) match {
    case conflict: ConcurrentWriteException => rules.policy.fold[Throwable](conflict) { policy =>
        val rejected = unjudged(Unjudged.AnyCommit, policy, OperationClass.Overwrite, op, conflict)
        audit.rejected(policy, op, rejected)
        rejected
      }
    case other => other
  }

  /** A conflict in place of what goes wrong where the log was cleaned up to behind the version that was
    * read.
    */
  private object CommitsGone {
    def unapply(failed: Throwable): Option[DeltaConcurrentModificationException] = failed match {
      case _: AssertionError | _: FileNotFoundException | _: IllegalStateException |
          _: CoordinatorException =>
        transaction.governed.filter(_ => table.isCleanedUp && transaction.isSameTable)
          .map { commit =>
            import commit._
            unjudged(Unjudged.CommitsGone, policy, operationClass, operation, failed)
          }
      case _ => None
    }
  }

  private def unjudged(
      reason: Unjudged,
      policy: Policy,
      operationClass: OperationClass,
      op: Operation,
      cause: Throwable
  ) = Conflicts.unjudged(
    reason,
    policy,
    operationClass,
    Operations.name(op),
    table.name,
    table.snapshot.version,
    transaction.txnId,
    cause
  )

  private def lost(
      op: Operation,
      actions: Seq[Action],
      conflict: DeltaConcurrentModificationException
  ): Throwable = {
    transaction.governed match {
      case Some(commit) =>
        audit.rejected(commit.policy, op, conflict)
        afterConflict(commit, actions, conflict)
      case None => if (!op.isInstanceOf[OptimizeOrReorg]) staged.deleteAll(actions): Unit
    }
    conflict
  }

  /** Deletes what the statement staged. Only where files decide may Delta, with the same files, try its
    * own compactions again, while their inputs are live.
    */
  private def afterConflict(
      commit: GovernedCommit,
      actions: Seq[Action],
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val isTriedAgain = commit.isRetriedByDelta && commit.policy.judgesReads &&
      !conflict.isInstanceOf[InterlockConflict] && Try(areInputsLive(actions)).getOrElse(false)
    if (!isTriedAgain) {
      if (commit.isRetriedByDelta) FailedCompaction.remember(conflict)
      staged.deleteAll(actions): Unit
    }
  }

  /** What Delta asks before it tries a compaction again. */
  private def areInputsLive(actions: Seq[Action]): Boolean = {
    val inputs = actions.collect { case remove: RemoveFile => remove.path }.distinct
    val now = table.log.update(catalogTableOpt = table.catalogTable)
    now.metadata.partitionSchema == table.snapshot.metadata.partitionSchema &&
    now.allFiles.filter(col("path").isInCollection(inputs)).count() == inputs.size
  }

  /** What a statement raises that has committed nothing.
    *
    * @param left
    *   how many of its files could not be deleted
    */
  private def definite(op: Operation, failed: Throwable, left: Int): Throwable = failed match {
    case refused: CoordinatorException => InterlockException.ofCoordinator(refused)
    case refused: InterlockException => refused
    case NonFatal(_) if !table.isNew && !transaction.isSameTable && table.canSeeLog =>
      val found = table.whatBecame(transaction.session)
      InterlockException.tableGone(table.name, Operations.name(op), found, failed)
    case StorageFault(reason) =>
      InterlockException.storageFailed(table.name, Operations.name(op), reason, left, failed)
    case _ => failed
  }
}
