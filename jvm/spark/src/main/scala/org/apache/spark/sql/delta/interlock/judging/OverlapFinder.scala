package org.apache.spark.sql.delta.interlock.judging

import java.io.FileNotFoundException

import io.interlock.rules._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}
import org.apache.spark.sql.delta.interlock.rebase.RowVectors

/** Finds out where an attempt and a winner overlap, for the verdicts BY_FILES and BY_ROWS.
  *
  * @param level
  *   decides whether rows count that the winner added by a blind append
  */
final private[interlock] class OverlapFinder(
    spark: SparkSession,
    info: CurrentTransactionInfo,
    winner: WinningCommitSummary,
    level: IsolationLevel,
    attempt: GovernedCommit,
    vectors: RowVectors
) {
  import ConflictKind._

  private val rows = new WinnerRows(winner, vectors, attempt.partitionOf(_, winner).nonEmpty)
  private val reads = new ReadRows(spark, info, attempt, winner)
  private val removes = info.actions.collect { case remove: RemoveFile => remove.path }.toSet

  /** BY_FILES: the winner added rows that the attempt's predicates select, or removed files that the
    * attempt has read or removes as well.
    */
  def inFiles: Option[Overlap] =
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

  /** BY_ROWS: the attempt has read rows that the winner added, marked dead or removed. Rows that
    * the attempt removes itself are left to [[sameRows]].
    */
  def inReads: Option[Overlap] =
    inAdded.orElse {
      if (reads.removesAllItReads) None
      else among(rows.dead, ConcurrentDeleteRead, "removed")
    }

  /** BY_ROWS: both changed rows of one file, and their deletion vectors cannot be united. */
  def sameRows(reason: String): Overlap =
    overlap(reason, removedOf(removes))

  private def inAdded: Option[Overlap] = {
    val isBlindAppend = winner.isBlindAppendOption.contains(true)
    if (Isolation.countsAdded(level.toString, isBlindAppend, info.metadataChanged)) inAddedRows
    else None
  }

  /** The attempt's predicates select rows that the winner added. */
  def inAddedRows: Option[Overlap] = among(rows.added, ConcurrentAppend, "added")

  private def among(
      files: => Seq[AddFile],
      kind: ConflictKind.OfData,
      did: String
  ): Option[Overlap] =
    try reads.among(files, kind, did)
    catch {
      case _: FileNotFoundException =>
        val removed = winner.removedFiles.map(_.path).take(Overlap.FilesShown)
        Some(Overlap(ConcurrentDeleteRead, RowVectors.Gone, removed, undecided = true))
    }

  private def readFiles = info.readFiles.map(_.path)

  private def removedOf(files: Set[String]): Seq[String] =
    winner.removedFiles.map(_.path).filter(files)

  private def removed(files: Seq[String], why: String): Option[Overlap] =
    Option.when(files.nonEmpty)(overlap(why, files))

  private def overlap(why: String, files: Seq[String]): Overlap = Overlap(
    ConflictKind.of(
      attempt.asWinner(winner).operationClass,
      attempt.operationClass,
      winnerAddedData = false,
      winnerRemoved = true,
      onlyRemove
    ),
    why,
    files.take(Overlap.FilesShown)
  )
}
