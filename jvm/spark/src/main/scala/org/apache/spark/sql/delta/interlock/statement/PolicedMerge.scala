package org.apache.spark.sql.delta.interlock.statement

import io.interlock.spark.errors.InterlockConflict
import org.apache.spark.internal.LogEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.commands.merge.DeduplicateCDFDeletes
import org.apache.spark.sql.delta.commands.merge.MergeIntoMaterializeSourceReason.MergeIntoMaterializeSourceReason
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.interlock.judging.MatchedReads
import org.apache.spark.sql.delta.{DeltaOperations, DeltaTableUtils, OptimisticTransaction}
import org.apache.spark.sql.types.StructType

/** A MERGE that tells its transaction that it changes rows, and which rows it reads. The parameters
  * are those of Delta's command.
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
    )
    with ChangesRows {

  override protected def logName: String = classOf[MergeIntoCommand].getName

  private def judgesReads: Boolean = SessionPolicy.of(index).exists(_.judgesReads)

  /** A conflict is no fault of the MERGE, and reaches its caller. */
  override protected def logError(entry: LogEntry, error: Throwable): Unit = error match {
    case _: InterlockConflict =>
    case _ => super.logError(entry, error)
  }

  /** Delta reads the source of a MERGE that only inserts once, and so does not materialise it. Under
    * a policy that judges by reads it may be read again when the MERGE is judged.
    */
  override protected def shouldMaterializeSource(
      spark: SparkSession,
      source: LogicalPlan,
      isInsertOnly: Boolean
  ): (Boolean, MergeIntoMaterializeSourceReason) =
    super.shouldMaterializeSource(spark, source, isInsertOnly && !judgesReads)

  override protected def prepareMergeSource(
      spark: SparkSession,
      source: LogicalPlan,
      condition: Expression,
      matched: Seq[DeltaMergeIntoMatchedClause],
      notMatched: Seq[DeltaMergeIntoNotMatchedClause],
      isInsertOnly: Boolean
  ): Unit = {
    OptimisticTransaction.getActive().foreach { transaction =>
      refuseNewColumns(transaction, index.metadata)
      begin(transaction)
    }
    super.prepareMergeSource(spark, source, condition, matched, notMatched, isInsertOnly)
    OptimisticTransaction.getActive().foreach {
      case ours: InterlockTransaction =>
        ours.writes.changes(unwritten(changesData = false))
        ours.reads.nextScanIn(partitions(spark).toSeq)
        if (judgesReads) ours.reads.nextScanIsFor(MatchedReads.of(this, getMergeSource))
      case _ =>
    }
  }

  /** The partitions whose rows ON or a WHEN NOT MATCHED BY SOURCE clause can select. With such a
    * clause Delta scans all of the table, and counts all as read.
    */
  private def partitions(spark: SparkSession): Option[Expression] = {
    val columns = index.partitionSchema.map(_.name)
    val ofTable = AttributeSet(into.collectLeaves().flatMap(_.output))
    def inPartitions(condition: Expression): Option[Expression] =
      splitConjunctivePredicates(condition).filter(part =>
        part.deterministic && part.references.nonEmpty && part.references.subsetOf(ofTable) &&
          DeltaTableUtils.isPredicateMetadataOnly(part, columns, spark)
      ).reduceOption(And(_, _))
    val parts = (on +: notMatchedBySource.map(_.condition.getOrElse(Literal.TrueLiteral)))
      .map(inPartitions)
    if (parts.contains(None)) None else parts.flatten.reduceOption(Or(_, _))
  }

  /** Writes the files of a MERGE that has found rows which match.
    *
    * @param writesUnmodifiedRows
    *   whether the files in which it found them are written anew
    */
  override protected def writeAllChanges(
      spark: SparkSession,
      transaction: OptimisticTransaction,
      found: Seq[AddFile],
      deletes: DeduplicateCDFDeletes,
      writesUnmodifiedRows: Boolean
  ): Seq[FileAction] = {
    val changesMatches = isMatchedOnly ||
      notMatchedBySource.isEmpty && matched.exists(_.condition.isEmpty)
    transaction match {
      case ours: InterlockTransaction =>
        ours.writes.changes(unwritten(writesUnmodifiedRows || changesMatches))
      case _ =>
    }
    super.writeAllChanges(spark, transaction, found, deletes, writesUnmodifiedRows)
  }

  private def unwritten(changesData: Boolean) = Unwritten(
    DeltaOperations.Merge(Some(on), Nil, Nil, Nil),
    changesData,
    marksRows = false,
    isConfined = false
  )
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
