package org.apache.spark.sql.delta.interlock.block

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.interlock.commit.Siblings
import org.apache.spark.sql.delta.interlock.statement.InterlockTransaction
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Lets a query that reads several tables see each atomic block in all of them or in none.
  *
  * A rule for one run of the optimizer: Spark makes a new one for each. It comes before the rule of
  * Delta that plans the scans, and fixes the snapshots for it. While a transaction runs, as for the
  * source of a MERGE, they belong to the tables as the transaction has read them.
  */
final class WholeBlocksInQueries(session: SparkSession) extends Rule[LogicalPlan] {
  private var isDone = false

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Subquery => plan // its snapshots are fixed with those of its query
    case _ if isDone || Block.of(session).nonEmpty => plan
    case _ =>
      isDone = true
      val ofTransaction = OptimisticTransaction.getActive().toSeq.flatMap(readBy)
      val tables = plan.collectWithSubqueries { case Scan(_, _, files) => files }
        .distinctBy(_.deltaLog.compositeId)
        .filterNot(files => ofTransaction.exists(_.log.isSameLogAs(files.deltaLog)))
      if (tables.isEmpty || tables.size + ofTransaction.size < 2) plan
      else fixed(plan, ofTransaction, tables)
  }

  /** The tables as a transaction reads them: its own, and those that it has read before. */
  private def readBy(running: OptimisticTransaction): Seq[WholeBlocks.Read] = {
    val others = running match {
      case ours: InterlockTransaction => ours.otherSnapshots.map(WholeBlocks.Read(_, None))
      case _ => Nil
    }
    WholeBlocks.Read(running.snapshot, running.catalogTable) +: others
  }

  private def fixed(
      plan: LogicalPlan,
      ofTransaction: Seq[WholeBlocks.Read],
      tables: Seq[TahoeLogFileIndex]
  ): LogicalPlan = {
    val read = tables.map(files => WholeBlocks.Read(files.getSnapshot, files.catalogTableOpt))
    val snapshots = WholeBlocks.together(ofTransaction, read)
      .map(table => table.log.compositeId -> table.snapshot).toMap
    plan.transformWithSubqueries {
      case Scan(scan, relation, files) if snapshots.contains(files.deltaLog.compositeId) =>
        val fixed = new FixedFileIndex(files, snapshots(files.deltaLog.compositeId))
        scan.copy(relation = relation.copy(location = fixed)(relation.sparkSession))
    }
  }

  /** By what the table is now: a frame may be older than its properties. */
  private def isOfBlocks(files: TahoeLogFileIndex) =
    Siblings.mayHave(files.deltaLog.unsafeVolatileSnapshot.metadata)

  /** A scan of a table that blocks over several tables can change. */
  private object Scan {
    def unapply(plan: LogicalPlan): Option[(LogicalRelation, HadoopFsRelation, TahoeLogFileIndex)] =
      plan match {
        case scan @ LogicalRelation(relation: HadoopFsRelation, _, _, _, _) =>
          Some(relation.location).collect {
            case earlier: IndexInState => earlier.ofTable
            case files: TahoeLogFileIndex if !files.isTimeTravelQuery => files
          }.filter(isOfBlocks).map((scan, relation, _))
        case _ => None
      }
  }
}
