package io.interlock.spark.compaction

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.optimize.FileSizeStatsWithHistogram
import org.apache.spark.sql.delta.util.JsonUtils

/** The operation of a compaction, for the table's history. */
final class CompactOperation(kind: CompactionKind, scope: Option[Expression])
    extends DeltaOperations.OperationWithPredicates(kind.name, scope.toSeq) {
  override def parameters: Map[String, Any] =
    Map("predicate" -> JsonUtils.toJson(scope.toSeq.map(_.sql)))
  override val operationMetrics: Set[String] = DeltaOperations.Optimize(Nil).operationMetrics
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(false)
  override def canChangePartitionColumns: Boolean = false
}

object CompactOperation {

  /** The metrics that OPTIMIZE has, with the same names. */
  def metrics(added: Seq[AddFile], removed: Seq[RemoveFile]): Map[String, Long] = {
    val sizes = FileSizeStatsWithHistogram.create(added.map(_.size).sorted)
    Map(
      "numAddedFiles" -> added.size.toLong,
      "numRemovedFiles" -> removed.size.toLong,
      "numAddedBytes" -> added.map(_.size).sum,
      "numRemovedBytes" -> removed.flatMap(_.size).sum,
      "numDeletionVectorsRemoved" -> removed.count(_.deletionVector != null).toLong
    ) ++ sizes.toSeq.flatMap { size =>
      Seq(
        "minFileSize" -> size.min,
        "p25FileSize" -> size.p25,
        "p50FileSize" -> size.p50,
        "p75FileSize" -> size.p75,
        "maxFileSize" -> size.max
      )
    }
  }
}
