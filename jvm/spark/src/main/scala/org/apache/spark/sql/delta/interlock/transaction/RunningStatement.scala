package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.OperationClass
import io.interlock.spark.commits.RunningChange
import org.apache.spark.sql.delta.actions.RemoveFile
import org.apache.spark.sql.delta.interlock.transaction.CommitState.Judged

/** What a statement that is under way may become, for compactions that make way for it. They ask
  * from other threads.
  */
final private[transaction] class RunningStatement(
    transaction: OpenTransaction,
    rules: => TableRules
) {

  /** Whether the commit is in the queue and waits for its outcome. */
  @volatile private var isSent = false

  /** Whether it is an UPDATE, DELETE or MERGE. */
  @volatile private var isChange = false

  /** The classes that the statement may have before its commit, of those for which compactions make
    * way.
    */
  @volatile private var mayBe = Set.empty[OperationClass]

  def sending[A](send: => A): A = {
    isSent = true
    try send
    finally isSent = false
  }

  /** The statement changes rows. */
  def changesRows(): Unit = {
    isChange = true
    mayBe = yieldedTo(OperationClass.Mutate)
  }

  /** Writes rows; of a statement that changes none, they are added or replace others. */
  def writing[A](write: => A): A =
    if (isChange) write
    else {
      mayBe = yieldedTo(OperationClass.Append, OperationClass.Overwrite)
      try write
      finally mayBe = Set.empty
    }

  /** What the statement has read, if compactions make way for it.
    *
    * @param since
    *   when it began
    */
  def change(since: Long): Option[RunningChange] = {
    val classes = transaction.governed.fold(mayBe)(commit =>
      commit.policy.yieldedTo & Set(commit.operationClass)
    )
    if (classes.isEmpty || isSent || transaction.isMade) None
    else Some(RunningChange(since, RunningTransactions.owner(transaction.session), classes, files))
  }

  /** The files that it has read; none if it may have read any. */
  private def files: Option[Set[String]] = transaction.state match {
    case Judged(_, info, _, _, _) => Option.unless(info.readWholeTable)(
        info.readFiles.map(_.path) ++
          info.actions.collect { case remove: RemoveFile => remove.path }
      )
    case _ =>
      // A statement that changes rows may not have planned its scan yet.
      transaction.filesRead.filter(_ => !isChange || transaction.predicates.nonEmpty)
  }

  private def yieldedTo(classes: OperationClass*) =
    rules.policy.fold(Set.empty[OperationClass])(_.yieldedTo.intersect(classes.toSet))
}
