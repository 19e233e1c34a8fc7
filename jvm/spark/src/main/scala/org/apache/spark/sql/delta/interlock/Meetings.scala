package org.apache.spark.sql.delta.interlock

import io.interlock.rules._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.RemoveFile

/** Looks for where an attempt and a winner met, for the verdicts that ask for it.
  *
  * @param level
  *   decides whether rows count that the winner added without reading the table
  */
final private[interlock] class Meetings(
    spark: SparkSession,
    info: CurrentTransactionInfo,
    winner: WinningCommitSummary,
    level: IsolationLevel,
    attempt: PolicedAttempt,
    vectors: RowVectors
) {
  import ConflictKind._

  private val rows = new WinnerRows(winner, vectors)
  private val reads = new ReadRows(spark, info, attempt)
  private val removes = info.actions.collect { case remove: RemoveFile => remove.path }.toSet

  /** BY_FILES: the winner added rows that the attempt's predicates select, or removed files that the
    * attempt has read or removes as well.
    */
  def inFiles: Option[Meeting] =
    inAdded
      .orElse(removed(info.readFiles.map(_.path), "it has read"))
      .orElse(Option.when(info.readWholeTable)(winner.removedFiles).filter(_.nonEmpty).map(files =>
        meeting("it has read the whole table", files.map(_.path))
      ))
      .orElse(removed(removes, "it removes as well"))

  /** BY_ROWS: rows that the winner added, marked dead or removed are among what the attempt has read,
    * but for those that it removes itself, see [[sameRows]].
    */
  def inReads: Option[Meeting] =
    inAdded.orElse {
      if (reads.removesAllItReads) None
      else reads.among(rows.dead, ConcurrentDeleteRead, "removed")
    }

  /** BY_ROWS: both changed rows of one file, and they cannot be united. */
  def sameRows(reason: String): Meeting =
    meeting(reason, winner.removedFiles.map(_.path).filter(removes))

  private def inAdded: Option[Meeting] = {
    val counts = level match {
      case SnapshotIsolation => false
      case WriteSerializable if !info.metadataChanged =>
        !winner.isBlindAppendOption.getOrElse(false)
      case _ => true
    }
    if (counts) inAddedRows else None
  }

  /** Rows that the winner added are among what the attempt has read. */
  def inAddedRows: Option[Meeting] = reads.among(rows.added, ConcurrentAppend, "added")

  private def removed(files: Set[String], which: String): Option[Meeting] = {
    val both = winner.removedFiles.map(_.path).filter(files)
    Option.when(both.nonEmpty)(meeting(s"the earlier job removed files that $which", both))
  }

  private def meeting(why: String, files: Seq[String]): Meeting = {
    val compactions = OperationClass.compactions
    val both =
      compactions(attempt.operationClass) && compactions(attempt.asWinner(winner).operationClass)
    Meeting(
      if (both) ConcurrentDeleteDelete else ConcurrentDeleteRead,
      why,
      files.take(Meeting.FilesShown)
    )
  }
}
