package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.spark.compaction.{Bins, OptimizeBin}
import io.interlock.spark.properties.RequiredStatistics
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.delta.actions.FileAction
import org.apache.spark.sql.delta.interlock.compaction.OrderedRewrite

/** Writes a statement's files before its commit. */
final private[transaction] class StatementWrites(transaction: OpenTransaction, rules: TableRules) {

  /** Shared by all bins of an OPTIMIZE, on several threads. */
  private lazy val rewrite = new OrderedRewrite(transaction, transaction.table.name)

  /** Writes files and remembers them. An OPTIMIZE that packs files keeps the order of rows, so that
    * the new file can say where each row comes from.
    *
    * @param delta
    *   writes rows as files
    */
  def run(data: Dataset[_], isOptimize: Boolean)(
      delta: Dataset[_] => Seq[FileAction]
  ): Seq[FileAction] = {
    rules.refuseOthers()
    def write(rows: Dataset[_]) = {
      RequiredStatistics.check(rows.sparkSession, transaction.table.name, transaction.metadata)
      delta(rows)
    }
    val files = Some(data).filter(_ => isOptimize && rules.policy.nonEmpty) match {
      case Some(OptimizeBin(inputs)) =>
        rewrite.run(Seq(Bins.inOrder(inputs)))(write).flatMap(_.output)
      case _ => write(data)
    }
    if (rules.isCoordinated(transaction.metadata)) transaction.staged.written(files)
    files
  }
}
