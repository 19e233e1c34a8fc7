package org.apache.spark.sql.delta.interlock.judging

import scala.util.control.NonFatal

import com.google.common.base.Throwables
import io.interlock.rules.{ConflictKind, Overlap}
import io.interlock.spark.commits.CommitTags
import io.interlock.spark.predicates.Decidable
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.AddFile

/** The reads of an attempt, compared with the rows that a winner changed.
  *
  * Predicates on partition columns are decided from the log alone. If files are left and there are
  * predicates on data columns, the columns that they name are read from these files.
  */
final private[interlock] class ReadRows(
    spark: SparkSession,
    info: CurrentTransactionInfo,
    attempt: GovernedCommit,
    winner: WinningCommitSummary
) {

  /** Whether the attempt removes every row that it has read. */
  def removesAllItReads: Boolean =
    ReadRows.changesWhatItSelects(info.op) && info.readPredicates.size == 1

  /** The overlap of the attempt's reads with rows of these files, by its first predicate that
    * selects some of them or cannot be decided.
    *
    * @param files
    *   files whose live rows are the rows that the winner added or removed
    * @param did
    *   the winner's change of these rows, such as "added"
    */
  def among(files: Seq[AddFile], kind: ConflictKind.OfData, did: String): Option[Overlap] =
    if (files.isEmpty) None
    else if (info.readWholeTable) Some(Overlap(kind, "it read the whole table", shown(files)))
    else
      info.readPredicates.distinct.iterator
        .flatMap(read => new Selection(read, files, kind, did).overlap)
        .nextOption()

  final private class Selection(
      read: DeltaTableReadPredicate,
      files: Seq[AddFile],
      kind: ConflictKind.OfData,
      did: String
  ) {
    private val conditions =
      (read.partitionPredicates ++ read.dataPredicates).flatMap(splitAnd).filter(_ != TrueLiteral)
    private val undecidable = conditions.filterNot(Decidable.apply)
    private val onData = read.dataPredicates.flatMap(splitAnd)
      .filter(condition => condition != TrueLiteral && Decidable(condition))
    private val selects = attempt.selects(read, info)
    private val candidates = files.filter(partitionOf(_).forall(selects))

    def overlap: Option[Overlap] =
      if (candidates.isEmpty) None
      else if (onData.isEmpty || candidates.exists(partitionOf(_).isEmpty))
        Some(overlapIn(reason, candidates, Nil, undecided = isOpen))
      else
        try
          Some(new RowsOfFiles(spark, info.readSnapshot, candidates).where(onData))
            .filter(_.nonEmpty)
            .map(rows => overlapIn(reason, filesOf(rows), rows.map(_.json), undecided = isOpen))
        catch {
          case NonFatal(error) => Some(overlapIn(failed(error), candidates, Nil, undecided = true))
        }

    /** Whether a part of the predicate cannot be decided. */
    private def isOpen: Boolean =
      read.shouldRewriteFilter && (conditions.isEmpty || undecidable.nonEmpty)

    private def reason: String =
      if (!read.shouldRewriteFilter) s"it replaces partitions in which the earlier job $did rows"
      else if (undecidable.nonEmpty)
        s"${Decidable.sql(undecidable)} cannot be decided for rows that the earlier job $did"
      else if (conditions.isEmpty)
        s"it reads every row, those included that the earlier job $did$ofMerge"
      else s"its predicate ${Decidable.sql(conditions)} selects rows that the earlier job $did"

    private def ofMerge: String = mergeCondition.fold("")(condition =>
      s" (no part of $condition is about this table alone)"
    )

    private def failed(error: Throwable): String = {
      val cause = Throwables.getRootCause(error).toString.linesIterator.nextOption()
      s"its predicate ${Decidable.sql(conditions)} cannot be evaluated on rows that the earlier " +
        s"job $did: ${cause.getOrElse("")}"
    }

    private def filesOf(rows: Seq[FoundRow]): Seq[AddFile] = {
      val names = rows.map(_.file).toSet
      candidates.filter(file => names(new Path(file.toPath.toString).getName))
    }

    private def overlapIn(
        why: String,
        files: Seq[AddFile],
        rows: Seq[String],
        undecided: Boolean
    ): Overlap = {
      val predicate =
        if (!read.shouldRewriteFilter) None
        else if (conditions.isEmpty) mergeCondition
        else Some(Decidable.sql(conditions))
      Overlap(kind, why, shown(files), rows, predicate, undecided)
    }
  }

  private def partitionOf(file: AddFile) = attempt.partitionOf(file, winner)

  private def mergeCondition: Option[String] = info.op match {
    case merge: DeltaOperations.Merge => merge.predicate.map(_.sql)
    case _ => None
  }

  private def shown(files: Seq[AddFile]): Seq[String] = files.take(Overlap.FilesShown).map(_.path)

  private def splitAnd(predicate: Expression): Seq[Expression] = predicate match {
    case And(left, right) => splitAnd(left) ++ splitAnd(right)
    case other => Seq(other)
  }
}

private[interlock] object ReadRows {
  private def changesWhatItSelects(op: Operation): Boolean = op match {
    case _: DeltaOperations.Update | _: DeltaOperations.Delete => true
    case _ => false
  }

  /** The tags of a commit that has read by so many predicates. For an UPDATE or DELETE, only this
    * tag tells later readers of the log that its subqueries have read rows besides those that it
    * changed.
    */
  def tags(op: Operation, predicates: Int): Map[String, String] =
    if (changesWhatItSelects(op) && predicates > 1) Map(CommitTags.ReadsOthers -> "true")
    else Map.empty
}
