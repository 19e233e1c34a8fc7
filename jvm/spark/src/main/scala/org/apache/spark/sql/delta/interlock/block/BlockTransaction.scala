package org.apache.spark.sql.delta.interlock.block

import scala.util.control.NonFatal

import io.interlock.coordinator.CommitUnknownException
import io.interlock.rules.OperationClass
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.errors.{CommitStateUnknownException, Conflicts, InterlockConflict}
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions.{Action, AddFile}
import org.apache.spark.sql.delta.interlock.commit.{CommitLoop, Made}
import org.apache.spark.sql.delta.interlock.statement.{InterlockTransaction, RunningTransactions}
import org.apache.spark.sql.delta.{CurrentTransactionInfo => Info, IsolationLevel, Serializable}

/** The commit of a block to several tables, as the transaction of one of them knows it. */
private[block] trait WholeCommit {

  /** The names of the tables that it changes. */
  def tables: String

  /** Makes the commit of a table, with those of all others. */
  def make(table: BlockTransaction, loop: CommitLoop): Made

  /** Takes up the reads of a table that gets no version. */
  def judge(table: BlockTransaction, loop: CommitLoop): Unit

  /** Whether the failure is one of this table's: the first that asks, if that is not known. */
  def isOf(table: BlockTransaction): Boolean
}

/** The transaction that commits what the statements of a block have done to a table: one version,
  * judged by the table's policy with all that they have read.
  */
final private[block] class BlockTransaction(table: BlockTable, id: String)
    extends InterlockTransaction(table.log, table.catalogTable, table.base) {

  private lazy val statements = table.state.statements // when it commits

  /** The commit of the block, if it commits to several tables. */
  private var whole = Option.empty[WholeCommit]

  def of: BlockTable = table

  override protected def ofBlock: Option[String] = Some(id)

  /** Commits it as a part of the block's commit: it waits, when it is ready, for the others. */
  def run(ofBlock: WholeCommit): Option[Long] = {
    whole = Some(ofBlock)
    run()
  }

  override protected def make(loop: CommitLoop): Made =
    whole.fold(super.make(loop))(_.make(this, loop))

  /** Delta judges what changes nothing more mildly; but the block changes other tables. */
  override protected def judgeWithoutActions(reads: Info, level: IsolationLevel): Unit =
    super.judgeWithoutActions(
      reads,
      if (whole.isEmpty) level else rules.isolation(Serializable, governed, metadata)
    )

  override protected def check(loop: CommitLoop): Unit =
    whole.fold(super.check(loop))(_.judge(this, loop))

  /** What has failed in another table is that one's error. */
  override protected def raised(op: Operation, actions: Seq[Action], failed: Throwable): Throwable =
    failed match {
      case _ if whole.exists(!_.isOf(this)) => failed
      case unknown: CommitUnknownException if whole.nonEmpty =>
        CommitStateUnknownException.of(whole.get.tables, s"the atomic block $id", unknown)
      case _ => super.raised(op, actions, failed)
    }

  /** The error of a table that gets no version: Delta is done with its commit. */
  def judged(failed: Throwable): Throwable = raised(governed.get.operation, Nil, failed) match {
    case lost: InterlockConflict => told(lost)
    case other => other
  }

  /** Deletes its files. */
  def rollBack(): Unit = {
    RunningTransactions.end(this)
    statement.staged.adopt(table.staged, Nil)
    statement.staged.deleteAll(Nil): Unit
  }

  /** @return
    *   the version; none if the statements together change nothing, and have not lost
    * @throws org.apache.spark.sql.delta.DeltaConcurrentModificationException
    *   if the block loses
    */
  def run(): Option[Long] = {
    val net = table.state.net
    statements.foreach(takeUp)
    reads.add(table.readByPlans.toSeq)
    statement.staged.adopt(table.staged, Nil)
    newMetadata = net.metadata
    val changing = statements.filter(isChange)
    val version =
      try
        commitImpl(
          net.actions(table.highestRowId),
          operation(if (changing.isEmpty) statements else changing),
          canSkipEmptyCommits = changing.isEmpty || net.isEmpty,
          Map(CommitTags.BlockId -> id)
        )
      catch {
        case lost: InterlockConflict if whole.forall(_.isOf(this)) => throw told(lost)
      }
    // A rebase may have written more deletion vectors, which are not among the block's files.
    table.staged.deleteAllBut(committed.toSeq.flatMap(_.committedActions))
    version
  }

  /** The conflict, with the statement of the block that has lost. */
  private def told(lost: InterlockConflict): Throwable =
    if (statements.nonEmpty && !table.isOfSeveral) lost
    else {
      // What is judged here is no commit that a second run of the block would claim.
      val first = ClaimingStatement.run(_ =>
        statements.find(new BlockTransaction(table, id).loses(_))
      )
        .orElse(statements.findLast(isChange).filter(_ => table.readByPlans.isEmpty))
      val who = first match {
        case Some(one) => s"it is statement ${one.number} of the block that loses, " +
            s"${Operations.name(one.info.op)} on ${table.name}"
        case None => s"a query of the block has read it in ${table.name}"
      }
      val why = s"${lost.conflict.why}; $who"
      Conflicts.raised(lost.conflict.copy(why = why), SessionPolicies.readable)
    }

  /** Whether a statement loses by what it has read; not, if that cannot be found out. */
  private def loses(one: StagedStatement): Boolean =
    try {
      takeUp(one)
      governed = rules.policy.map(governedBy(_, one.info.op, Nil))
      judgeWithoutActions(readsOf(one.info.op), Serializable)
      false
    } catch { case NonFatal(failed) => failed.isInstanceOf[InterlockConflict] }

  private def takeUp(one: StagedStatement): Unit = {
    one.info.readPredicates.foreach(readPredicates.add)
    trackFilesRead(one.info.readFiles.toSeq.filterNot(table.isOfBlock).filterNot(isReadTwice))
    if (one.info.readWholeTable) readWholeTable()
    readTxn ++= one.info.readAppIds
    reads.take(one.matched)
    one.hooks.foreach(registerPostCommitHook)
  }

  /** A file of which the block has marked rows dead counts as it was before. */
  private def isReadTwice(file: AddFile) =
    readFiles.toArray(Array.empty[AddFile]).exists(_.path == file.path)

  /** Delta reads the feed of a version that has files of changes from these alone. */
  override protected def prepareCommit(actions: Seq[Action], op: Operation): Seq[Action] = {
    val net = table.state.net
    val changes =
      if (net.changes.isEmpty || net.isEmpty) Nil
      else if (statements.count(_.info.actions.nonEmpty) == 1) net.changes
      else {
        val written = new NetChanges(table, net).write()
        statement.staged.written(written)
        written
      }
    super.prepareCommit(actions ++ changes, op)
  }

  private def isChange(one: StagedStatement) =
    one.info.actions.nonEmpty || one.operationClass.contains(OperationClass.Overwrite)

  /** That of the block's only statement, or the block's own. */
  private def operation(changing: Seq[StagedStatement]): Operation = changing match {
    case Seq(only) =>
      writes.replacesNull = only.replacesNull
      only.info.op
    case several =>
      new BlockOperation(id, several.map(_.info.op), several.flatMap(_.operationClass).toSet)
  }

  /** The statements' metrics, added up. */
  override def getOperationMetrics(op: Operation): Option[Map[String, String]] =
    statements.flatMap(_.info.commitInfo).flatMap(_.operationMetrics).reduceOption((some, more) =>
      more.foldLeft(some) { case (all, (key, value)) =>
        all + (key -> all.get(key).flatMap(sum(_, value)).getOrElse(value))
      }
    )

  private def sum(a: String, b: String) =
    for (one <- a.toLongOption; other <- b.toLongOption) yield (one + other).toString
}
