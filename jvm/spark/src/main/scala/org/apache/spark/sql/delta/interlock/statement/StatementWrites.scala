package org.apache.spark.sql.delta.interlock.statement

import io.interlock.spark.compaction.{Bins, OptimizeBin}
import io.interlock.spark.properties.RequiredStatistics
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions.{FileAction, Metadata}
import org.apache.spark.sql.delta.interlock.commit.Statement
import org.apache.spark.sql.delta.interlock.compaction.OrderedRewrite
import org.apache.spark.sql.delta.interlock.table.PropertyRules
import org.apache.spark.sql.delta.{DeltaOptions, OptimisticTransaction}

/** A statement that changes rows, before it has written any.
  *
  * @param changesData
  *   whether its commit is sure to change data; Delta judges one that changes none by a weaker level
  * @param marksRows
  *   whether it first writes deletion vectors, as it scans the files that it has selected
  * @param isConfined
  *   whether it reads and writes only in the partitions that its condition selects
  */
final private[interlock] case class Unwritten(
    op: Operation,
    changesData: Boolean,
    marksRows: Boolean,
    isConfined: Boolean
)

/** What a statement writes before its commit. */
final private[interlock] class StatementWrites(
    transaction: OptimisticTransaction,
    statement: Statement,
    rules: => PropertyRules
) {

  /** The statement, if it is an UPDATE, DELETE or MERGE. */
  private var changing: Option[Unwritten] = None

  /** The same, while it has written nothing yet. */
  private var unwritten: Option[Unwritten] = None

  /** Whether a dynamic overwrite also replaces partitions with a NULL value. */
  var replacesNull = true

  /** Shared by all bins of an OPTIMIZE, on several threads. */
  private lazy val rewrite = new OrderedRewrite(transaction, statement.table.name)

  /** Tells that the statement changes rows, and has written nothing when it calls `writeFiles`, or
    * `filterFiles` if it marks rows.
    */
  def changes(change: Unwritten): Unit = {
    changing = Some(change)
    unwritten = changing
  }

  /** See [[Unwritten]]; other statements may read and write anywhere. */
  def isConfined: Boolean = changing.exists(_.isConfined)

  /** See [[Unwritten]]. */
  def marksRows: Boolean = changing.exists(_.marksRows)

  /** Whether the next scan of all rows already writes. */
  def beginWithScan: Boolean = unwritten.exists(_.marksRows)

  /** The statement, if it is an UPDATE, DELETE or MERGE that writes only from now on. */
  def begin(): Option[Unwritten] = {
    val first = unwritten
    unwritten = None
    first
  }

  /** Writes files and remembers them. An OPTIMIZE that packs files keeps the order of rows, so that
    * the new file can say where each row comes from.
    *
    * @param delta
    *   writes rows as files
    */
  def run(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      metadata: Metadata
  )(delta: Dataset[_] => Seq[FileAction]): Seq[FileAction] = {
    if (options.flatMap(_.useNullIntolerantEqualityWithDPO).contains(true)) replacesNull = false
    rules.refuseOthers()
    def write(rows: Dataset[_]) = {
      RequiredStatistics.check(rows.sparkSession, statement.table.name, metadata)
      delta(rows)
    }
    val files = Some(data).filter(_ => isOptimize && rules.policy.nonEmpty) match {
      case Some(OptimizeBin(inputs)) =>
        rewrite.run(Seq(Bins.inOrder(inputs)))(write).flatMap(_.output)
      case _ => write(data)
    }
    if (rules.isCoordinated(metadata)) statement.staged.written(files)
    files
  }
}
