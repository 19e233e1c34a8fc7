package io.interlock.spark.compaction

import org.apache.spark.sql.Dataset
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Repartition}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Recognizes the files that an OPTIMIZE packs into one, by the plan that reads them. Plans of
  * ZORDER and clustering, which reorder rows, do not match.
  */
object OptimizeBin {
  def unapply(data: Dataset[_]): Option[Seq[AddFile]] = data.queryExecution.analyzed match {
    case Repartition(1, false, scan) => files(scan)
    case _ => None
  }

  private def files(scan: LogicalPlan): Option[Seq[AddFile]] = scan match {
    case Project(_, child) => files(child)
    case relation: LogicalRelation => relation.relation match {
        case HadoopFsRelation(index: TahoeBatchFileIndex, _, _, _, _, _) => Some(index.addFiles)
        case _ => None
      }
    case _ => None
  }
}
