package org.apache.spark.sql.delta.interlock.judging

import scala.util.control.NonFatal

import com.google.common.base.Throwables
import io.interlock.rules.{Clash, ConflictKind, OperationClass, Overlap}
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
) extends PredicateHelper {

  /** Whether the attempt removes every row that it has read. */
  def removesAllItReads: Boolean =
    ReadRows.changesWhatItSelects(info.op) && info.readPredicates.size == 1

  /** The overlap of the attempt's reads with rows of these files, by its first predicate that
    * selects some of them or cannot be decided.
    *
    * @param files
    *   files whose live rows are the rows that the winner added or removed
    * @param did
    *   the winner's change of these rows, such as "wrote"
    */
  def among(files: Seq[AddFile], kind: ConflictKind.OfData, did: String): Option[Clash] =
    if (files.isEmpty) None
    else if (info.readWholeTable)
      Some(Clash(kind, s"$did rows, and it has read the whole table", Overlap(shown(files))))
    else
      distinct(info.readPredicates).iterator
        .flatMap { case (read, reads) => new Selection(read, reads, files, kind, did).clash }
        .nextOption()

  /** Scans of which only matching rows count are kept apart from others with the same predicate. */
  private def distinct(reads: Seq[DeltaTableReadPredicate]) = {
    val others = reads.filterNot(read => attempt.matched.exists(_.predicate eq read))
    attempt.matched.map(scan => scan.predicate -> Some(scan.reads)) ++ others.distinct.map(
      _ -> None
    )
  }

  final private class Selection(
      read: DeltaTableReadPredicate,
      matched: Option[MatchedReads],
      files: Seq[AddFile],
      kind: ConflictKind.OfData,
      did: String
  ) {
    private val conditions = (read.partitionPredicates ++ read.dataPredicates)
      .flatMap(splitConjunctivePredicates).filter(_ != TrueLiteral)
    private val undecidable = conditions.filterNot(Decidable.apply)
    private val onData = read.dataPredicates.flatMap(splitConjunctivePredicates)
      .filter(condition => condition != TrueLiteral && Decidable(condition))
    private val selects = attempt.selects(read, info)
    private val candidates = files.filter(partitionOf(_).forall(selects))

    def clash: Option[Clash] =
      if (candidates.isEmpty) None
      else if (candidates.exists(partitionOf(_).isEmpty)) Some(inAll(reason, isOpen))
      else matched.fold(byPredicates)(byMatch)

    private def byPredicates: Option[Clash] =
      if (onData.isEmpty) Some(inAll(reason, isOpen)) else among(onData, predicate, reason)

    private def byMatch(reads: MatchedReads): Option[Clash] =
      if (reads.undecidable.nonEmpty) Some(inAll(reason, undecided = true))
      else
        reads.bySourceOnly.flatMap { selected =>
          val sql = Decidable.sql(Seq(selected))
          among(onData :+ selected, Some(sql), "that its WHEN NOT MATCHED BY SOURCE reads")
        }.orElse {
          val matches = s"that its condition ${Overlap.short(reads.sql)} matches"
          among(onData, Some(reads.sql), matches, Some(reads))
        }

    /** Whether a part of the predicate cannot be decided. */
    private def isOpen: Boolean =
      read.shouldRewriteFilter && (conditions.isEmpty || undecidable.nonEmpty)

    /** Why the winner's rows count, as a clause to follow "rows". */
    private def reason: String =
      matched.flatMap(_.undecidable)
        .orElse(Option.when(undecidable.nonEmpty)(Decidable.sql(undecidable))) match {
        case _ if !read.shouldRewriteFilter => "in a partition that it overwrites"
        case Some(open) =>
          s"that it may have to read: ${Overlap.short(open)} cannot be decided for them"
        case None if conditions.isEmpty =>
          val isOverwrite = attempt.operationClass == OperationClass.Overwrite
          s"and it ${if (isOverwrite) "replaces" else "reads"} every row"
        case None => s"that its condition ${Overlap.short(Decidable.sql(conditions))} selects"
      }

    private def predicate: Option[String] =
      if (!read.shouldRewriteFilter) None
      else if (conditions.isEmpty) matched.map(_.sql)
      else Some(Decidable.sql(conditions))

    private def inAll(reason: String, undecided: Boolean) = Clash(
      kind,
      s"$did rows $reason",
      Overlap(shown(candidates), predicate = predicate, undecided = undecided)
    )

    /** The overlap in rows that match conditions, and a row of a source if there is one. */
    private def among(
        conditions: Seq[Expression],
        predicate: Option[String],
        reason: String,
        reads: Option[MatchedReads] = None
    ): Option[Clash] =
      try {
        val rows = new RowsOfFiles(spark, info.readSnapshot, candidates).where(conditions, reads)
        val shownRows = rows.map(_.json)
        Option.when(rows.nonEmpty)(Clash(
          kind,
          s"$did ${Overlap.counted(shownRows)} $reason",
          Overlap(
            shown(filesOf(rows)),
            shownRows,
            rows.flatMap(_.source),
            predicate,
            undecided = undecidable.nonEmpty
          )
        ))
      } catch {
        case NonFatal(error) if !JudgingJob.isCancelled(error) =>
          val cause = Throwables.getRootCause(error).toString.linesIterator.nextOption()
          val failed = "that it may have to read: its condition " +
            s"${predicate.fold("")(Overlap.short)} cannot be evaluated on them (${cause.getOrElse("")})"
          val clash = inAll(failed, undecided = true)
          Some(clash.copy(where = clash.where.copy(predicate = predicate)))
      }

    private def filesOf(rows: Seq[FoundRow]): Seq[AddFile] = {
      val names = rows.map(_.file).toSet
      candidates.filter(file => names(new Path(file.toPath.toString).getName))
    }
  }

  private def partitionOf(file: AddFile) = attempt.partitionOf(file, winner)

  private def shown(files: Seq[AddFile]): Seq[String] = files.take(Overlap.FilesShown).map(_.path)
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
