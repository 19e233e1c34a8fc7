package org.apache.spark.sql.delta.interlock.commit

import java.io.{FileNotFoundException, IOException}
import java.nio.file.FileAlreadyExistsException

import scala.util.control.NonFatal
import scala.util.{Success, Try}

import io.delta.exceptions.ProtocolChangedException
import io.interlock.coordinator.{Causes, CommitUnknownException, CoordinatorException}
import io.interlock.rules.{ConflictKind, OperationClass, Policy}
import io.interlock.spark.commits.Operations
import io.interlock.spark.compaction.FailedCompaction
import io.interlock.spark.errors._
import org.apache.spark.sql.delta.DeltaOperations.{Operation, OptimizeOrReorg}
import org.apache.spark.sql.delta.actions.{Action, Metadata, RemoveFile}
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, JudgingJob}
import org.apache.spark.sql.delta.interlock.table.PropertyRules
import org.apache.spark.sql.delta.{ConcurrentWriteException, DeltaConcurrentModificationException}
import org.apache.spark.sql.functions.col

/** Turns the failure of a commit into the statement's error, and deletes the statement's files or
  * says which are left. A conflict under a policy is recorded.
  */
final private[interlock] class Failures(
    statement: Statement,
    rules: PropertyRules,
    audit: CommitAudit,
    metadata: => Metadata,
    governed: => Option[GovernedCommit]
) {
  import statement.{staged, table, txnId}

  /** Runs a commit that gives a table its first policy. Delta makes this commit without the queue,
    * and if it fails, does not say whether it was made: the log is read to see which transaction
    * made the version.
    */
  def alone[A](version: Long)(commit: => A): A =
    try commit
    catch {
      case failed: Throwable
          if !failed.isInstanceOf[VirtualMachineError] &&
            rules.isCoordinated(metadata) && !rules.hasTwoCoordinators =>
        table.committerOf(version) match {
          case Success(Some(`txnId`)) =>
            statement.isMade = true
            throw ownVersion(version, failed)
          case Success(None) if table.isLocal || !mayArrive(failed) => throw failed
          case Success(Some(_)) => throw failed
          case _ => throw statement.unknown(version, failed)
        }
    }

  /** If Delta finds its own version in the log, it takes it for another writer's. */
  private def ownVersion(version: Long, failed: Throwable): Throwable = failed match {
    case _: FileAlreadyExistsException | _: ConcurrentWriteException =>
      new IOException(s"Version $version is there already, by this statement.", failed)
    case _ => failed
  }

  /** Whether a version that is not there may still appear in the storage. */
  private def mayArrive(failed: Throwable): Boolean = Causes.of(failed).exists {
    case _: IOException | _: InterruptedException => true
    case _ => false
  }

  /** The error for a failed commit to a table with a coordinator.
    *
    * @param actions
    *   the actions that the transaction wanted to commit
    */
  def raised(op: Operation, actions: Seq[Action], failed: Throwable): Throwable = failed match {
    // What the table's other coordinator says of a commit that removes the policy.
    case _ if rules.hasTwoCoordinators && !failed.isInstanceOf[InterlockException] => failed
    // Hooks that run after the commit may fail as well: then the files are live.
    case _ if statement.isMade => behindCommit(op, failed)
    case unknown: CommitUnknownException =>
      CommitStateUnknownException.of(table.name, Operations.name(op), unknown)
    case _: VirtualMachineError => failed
    case conflict: DeltaConcurrentModificationException => lost(op, actions, conflict)
    case CommitsGone(conflict) => lost(op, actions, conflict)
    case _ => definite(op, failed, left = staged.deleteAll(actions, ofNewTable = table.isNew))
  }

  /** What has failed may be a conflict, of a compaction after the commit: if it were raised, the
    * statement would be run again.
    */
  private def behindCommit(op: Operation, failed: Throwable): Throwable = failed match {
    case told: InterlockException => told
    case NonFatal(_) if !Causes.areInterrupt(failed) && !JudgingJob.isCancelled(failed) =>
      def innermost = StorageFault.described(Causes.of(failed).last)
      InterlockException.of(
        failed,
        "INTERLOCK_FAILED_AFTER_COMMIT",
        "table" -> table.name,
        "operation" -> Operations.name(op),
        "txnId" -> txnId,
        "reason" -> StorageFault.innermost(failed).getOrElse(innermost)
      )
    case _ => failed
  }

  /** The error for RESTORE and CLONE, which fail after any commit since the version that they read.
    */
  def raisedByLarge(op: Operation, failed: Throwable): Throwable = raised(op, Nil, failed) match {
    case conflict: ConcurrentWriteException => rules.policy.fold[Throwable](conflict) { policy =>
        val rejected = unjudged(Unjudged.AnyCommit, policy, OperationClass.Overwrite, op, conflict)
        audit.rejected(policy, op, governed, rejected)
        rejected
      }
    case other => other
  }

  /** Matches a failure because log clean-up has removed commits after the version that was read; it
    * is raised as a conflict.
    */
  private object CommitsGone {
    def unapply(failed: Throwable): Option[DeltaConcurrentModificationException] = failed match {
      case _: AssertionError | _: FileNotFoundException | _: IllegalStateException |
          _: CoordinatorException =>
        governed.filter(_ => table.isCleanedUp && table.isThere)
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
    txnId,
    Some(cause)
  )

  private def lost(
      op: Operation,
      actions: Seq[Action],
      found: DeltaConcurrentModificationException
  ): Throwable = {
    val conflict = told(found)
    governed match {
      case Some(commit) =>
        audit.rejected(commit.policy, op, Some(commit), conflict)
        afterConflict(commit, actions, conflict)
      case None => if (!op.isInstanceOf[OptimizeOrReorg]) staged.deleteAll(actions): Unit
    }
    conflict
  }

  /** Of a table that another job has created meanwhile, Delta says that its protocol was changed. */
  private def told(conflict: DeltaConcurrentModificationException) = conflict match {
    case changed: ProtocolChangedException if table.isNew =>
      val created = new ProtocolChangedException(
        s"[${changed.getErrorClass}] Another job created ${table.name} while this statement ran, " +
          "which was to create it as well; nothing of this one was kept. Run the statement again."
      )
      created.initCause(changed)
      created
    case other => other
  }

  /** Deletes the files that the statement staged. They are kept if the policy judges by files or
    * rows, Delta will retry its own compaction with them, and the compaction's inputs are still
    * live.
    */
  private def afterConflict(
      commit: GovernedCommit,
      actions: Seq[Action],
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val isOverData = conflict match {
      case told: InterlockConflict => told.conflict.kind != ConflictKind.MetadataChanged
      case _ => false
    }
    val isTriedAgain = commit.isRetriedByDelta && commit.policy.judgesReads &&
      !isOverData && Try(areInputsLive(actions)).getOrElse(false)
    if (!isTriedAgain) {
      if (commit.isRetriedByDelta) FailedCompaction.remember(conflict)
      staged.deleteAll(actions): Unit
    }
  }

  /** The condition under which Delta retries a compaction: the same files with the same deletion
    * vectors.
    */
  private def areInputsLive(actions: Seq[Action]): Boolean = {
    val inputs = actions.collect { case remove: RemoveFile =>
      remove.path -> remove.getDeletionVectorUniqueId
    }.toSet
    val now = table.log.update(catalogTableOpt = table.catalogTable)
    now.metadata.partitionSchema == table.snapshot.metadata.partitionSchema &&
    inputs.subsetOf(
      now.allFiles.filter(col("path").isInCollection(inputs.map(_._1))).collect()
        .map(file => file.path -> file.getDeletionVectorUniqueId).toSet
    )
  }

  /** The error of a statement that has committed nothing.
    *
    * @param left
    *   the number of its files that could not be deleted
    */
  private def definite(op: Operation, failed: Throwable, left: Int): Throwable = failed match {
    case refused: CoordinatorException => InterlockException.ofCoordinator(refused)
    case refused: InterlockException => refused
    case NonFatal(_) if !table.isNew && !table.isThere && table.whyUnseen.isEmpty =>
      import table.{catalogTable, log, snapshot}
      InterlockException.of(
        failed,
        "INTERLOCK_TABLE_GONE",
        "table" -> table.name,
        "operation" -> Operations.name(op),
        "found" -> GoneTable.whatBecame(statement.session, log, snapshot, catalogTable)
      )
    case StorageFault(reason) =>
      InterlockException.storageFailed(table.name, Operations.name(op), reason, left, failed)
    case _ => failed
  }
}
