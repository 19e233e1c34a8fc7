package org.apache.spark.sql.delta.interlock

import java.io.FileNotFoundException

import io.interlock.rules._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}

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

  private val rows = new WinnerRows(winner, vectors, attempt.partitionOf(_, winner).nonEmpty)
  private val reads = new ReadRows(spark, info, attempt, winner)
  private val removes = info.actions.collect { case remove: RemoveFile => remove.path }.toSet

  /** BY_FILES: the winner added rows that the attempt's predicates select, or removed files that the
    * attempt has read or removes as well.
    */
  def inFiles: Option[Meeting] =
    inAdded
      .orElse(removed(removedOf(readFiles), "the earlier job removed files that it has read"))
      .orElse(
        removed(
          if (info.readWholeTable) winner.removedFiles.map(_.path) else Nil,
          "it has read the whole table"
        )
      )
      .orElse(removed(removedOf(removes), "the earlier job removed files that it removes as well"))

  /** Whether both removed a file, and the attempt has read none that the winner removed. */
  def onlyRemove: Boolean =
    !info.readWholeTable && removedOf(readFiles).isEmpty && removedOf(removes).nonEmpty

  /** BY_ROWS: rows that the winner added, marked dead or removed are among what the attempt has read,
    * but for those that it removes itself, see [[sameRows]].
    */
  def inReads: Option[Meeting] =
    inAdded.orElse {
      if (reads.removesAllItReads) None
      else among(rows.dead, ConcurrentDeleteRead, "removed")
    }

  /** BY_ROWS: both changed rows of one file, and they cannot be united. */
  def sameRows(reason: String): Meeting =
    meeting(reason, removedOf(removes))

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
  def inAddedRows: Option[Meeting] = among(rows.added, ConcurrentAppend, "added")

  private def among(files: => Seq[AddFile], kind: ConflictKind, did: String): Option[Meeting] =
    try reads.among(files, kind, did)
    catch {
      case _: FileNotFoundException =>
        val removed = winner.removedFiles.map(_.path).take(Meeting.FilesShown)
        Some(Meeting(ConcurrentDeleteRead, RowVectors.Gone, removed, undecided = true))
    }

  private def readFiles = info.readFiles.map(_.path)

  private def removedOf(files: Set[String]): Seq[String] =
    winner.removedFiles.map(_.path).filter(files)

  private def removed(files: Seq[String], why: String): Option[Meeting] =
    Option.when(files.nonEmpty)(meeting(why, files))

  private def meeting(why: String, files: Seq[String]): Meeting = Meeting(
    ConflictKind.of(
      attempt.asWinner(winner).operationClass,
      attempt.operationClass,
      winnerAddedData = false,
      winnerRemoved = true,
      onlyRemove
    ),
    why,
    files.take(Meeting.FilesShown)
  )
}
