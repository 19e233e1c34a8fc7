package org.apache.spark.sql.delta.interlock.block

import org.apache.spark.sql.Dataset
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.statement.{InterlockTransaction, PlanReads, Unwritten}
import org.apache.spark.sql.functions.{col, lit, when}

/** The transaction of one statement of a block. Delta runs the whole statement by it, and prepares its
  * commit; then the commit is kept in memory as one of the block's, and the log is not touched.
  */
final private[block] class StagingTransaction(table: BlockTable, before: BlockTable#State)
    extends InterlockTransaction(table.log, table.catalogTable, before.snapshot) {

  /** What the block reads is judged at its commit. */
  override protected def endIfLost(change: Unwritten): Unit = ()
  override protected def takeUpReads(commit: GovernedCommit, level: IsolationLevel): Unit =
    table.reads(reads.ofPlans)

  /** Rows that were born in the block get their ids at its commit. A statement that copies such a row
    * has read an id that by then may be another row's, so it must not be written.
    */
  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    val lastKnown = Seq(
      MaterializedRowId.getMaterializedColumnName(protocol, metadata) -> table.highestRowId,
      MaterializedRowCommitVersion.getMaterializedColumnName(protocol, metadata) ->
        table.base.version
    ).collect { case (Some(name), last) => name -> last }.toMap
    def withoutNew(rows: Dataset[_]) = rows.toDF().select(rows.schema.map { field =>
      val column = col(s"`${field.name.replace("`", "``")}`")
      lastKnown.get(field.name).fold(column)(last =>
        when(column <= lit(last), column).as(field.name, field.metadata)
      )
    }: _*)
    val rows: Dataset[_] =
      if (!data.schema.fieldNames.exists(lastKnown.contains)) data
      else {
        reads.add(PlanReads.before(data.queryExecution, snapshot))
        withoutNew(data)
      }
    super.writeFiles(rows, options, isOptimize, constraints)
  }

  override protected def prepareCommit(actions: Seq[Action], op: Operation): Seq[Action] = {
    InBlock.refuse(op, table.name, snapshot.metadata, newMetadata, newProtocol)
    super.prepareCommit(actions, op)
  }

  override protected def doCommitRetryIteratively(
      version: Long,
      info: CurrentTransactionInfo,
      level: IsolationLevel
  ): (Long, Snapshot, CurrentTransactionInfo) = {
    val after = stage(info)
    commitEndNano = System.nanoTime()
    (version, after, info)
  }

  /** A statement that changes nothing counts by what it has read. */
  override protected def judgeWithoutActions(
      info: CurrentTransactionInfo,
      level: IsolationLevel
  ): Unit = stage(info): Unit

  private def stage(info: CurrentTransactionInfo): Snapshot = table.stage(
    before,
    new StagedStatement(
      info,
      governed.map(_.operationClass),
      keptMatches,
      writes.replacesNull,
      statement.staged,
      postCommitHooks.toSeq,
      table.nextNumber()
    )
  )

  /** The reads that count by matching rows only. Their sources are gone when the block commits, so a
    * source is kept in memory, or the whole scan counts.
    */
  private def keptMatches =
    if (governed.exists(_.policy.judgesReads)) reads.matched.filter(_.reads.isInMemory) else Nil

  override protected def runPostCommitHooks(committed: CommittedTransaction): Unit = ()

  override def commitLarge(
      session: org.apache.spark.sql.SparkSession,
      actions: Iterator[Action],
      protocol: Option[Protocol],
      op: Operation,
      context: Map[String, String],
      metrics: Map[String, String]
  ): (Long, Snapshot) = throw InBlock.refused(op.name)
}
