package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.spark.errors.InterlockConflict
import org.apache.spark.internal.LogEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSourceReason.MergeIntoMaterializeSourceReason
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.interlock.judging.MatchedReads
import org.apache.spark.sql.types.StructType

/** A MERGE that tells its transaction which rows it reads. The parameters are those of Delta's
  * command.
  */
final class PolicedMerge(
    from: LogicalPlan,
    into: LogicalPlan,
    catalogTable: Option[CatalogTable],
    index: TahoeFileIndex,
    on: Expression,
    matched: Seq[DeltaMergeIntoMatchedClause],
    notMatched: Seq[DeltaMergeIntoNotMatchedClause],
    notMatchedBySource: Seq[DeltaMergeIntoNotMatchedBySourceClause],
    evolved: Option[StructType],
    highWaterMarks: Set[String],
    evolves: Boolean
) extends MergeIntoCommand(
      from,
      into,
      catalogTable,
      index,
      on,
      matched,
      notMatched,
      notMatchedBySource,
      evolved,
      highWaterMarks,
      evolves
    ) {

  override protected def logName: String = classOf[MergeIntoCommand].getName

  /** A conflict is no fault of the MERGE, and reaches its caller. */
  override protected def logError(entry: LogEntry, error: Throwable): Unit = error match {
    case _: InterlockConflict =>
    case _ => super.logError(entry, error)
  }

  /** Delta reads the source of a MERGE that only inserts once, and so does not materialise it. Here
    * it may be read again when the MERGE commits.
    */
  override protected def shouldMaterializeSource(
      spark: SparkSession,
      source: LogicalPlan,
      isInsertOnly: Boolean
  ): (Boolean, MergeIntoMaterializeSourceReason) =
    super.shouldMaterializeSource(spark, source, isInsertOnly = false)

  override protected def prepareMergeSource(
      spark: SparkSession,
      source: LogicalPlan,
      condition: Expression,
      matched: Seq[DeltaMergeIntoMatchedClause],
      notMatched: Seq[DeltaMergeIntoNotMatchedClause],
      isInsertOnly: Boolean
  ): Unit = {
    super.prepareMergeSource(spark, source, condition, matched, notMatched, isInsertOnly)
    OptimisticTransaction.getActive().foreach {
      case policed: InterlockTransaction => policed.scansFor(MatchedReads.of(this, getMergeSource))
      case _ =>
    }
  }
}

object PolicedMerge {
  def of(merge: MergeIntoCommand): PolicedMerge = new PolicedMerge(
    merge.source,
    merge.target,
    merge.catalogTable,
    merge.targetFileIndex,
    merge.condition,
    merge.matchedClauses,
    merge.notMatchedClauses,
    merge.notMatchedBySourceClauses,
    merge.migratedSchema,
    merge.trackHighWaterMarks,
    merge.schemaEvolutionEnabled
  )
}
