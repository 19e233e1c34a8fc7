package org.apache.spark.sql.delta.interlock.judging

import java.io.FileNotFoundException

import scala.util.control.NonFatal

import io.interlock.rules._
import io.interlock.rules.rebase.Rebases
import io.interlock.spark.commits.CopiedRows
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, FileAction, RemoveFile}
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

  private val rows = new ChangedRows(
    winner.removedFiles,
    winner.addedFiles,
    vectors,
    attempt.partitionOf(_, winner).nonEmpty
  )
  private val reads = new ReadRows(spark, info, attempt, winner)
  private val removes = info.actions.collect { case remove: RemoveFile => remove.path }.toSet

  /** BY_FILES: the winner added rows that the attempt's predicates select, or removed files that the
    * attempt has read or removes as well.
    */
  def inFiles: Option[Clash] =
    inAdded
      .orElse(removed(removedOf(readFiles), "replaced files that it has read"))
      .orElse(
        removed(
          if (info.readWholeTable) winner.removedFiles.map(_.path) else Nil,
          "replaced files, and it has read the whole table"
        )
      )
      .orElse(removed(removedOf(removes), "replaced files that it replaces too"))

  /** Whether both removed a file, and the attempt has read none that the winner removed. */
  def onlyRemove: Boolean =
    !info.readWholeTable && removedOf(readFiles).isEmpty && removedOf(removes).nonEmpty

  /** BY_ROWS: the attempt has read rows that the winner added, marked dead or removed. Rows that
    * the attempt removes itself are left to [[sameRows]].
    */
  def inReads: Option[Clash] =
    inAdded.orElse {
      if (reads.removesAllItReads) None
      else among(rows.dead, ConcurrentDeleteRead, "changed or removed")
    }

  /** BY_ROWS: both changed rows of one file, and their deletion vectors cannot be united. A few of
    * the rows that both changed are named, if they can be read.
    *
    * @param did
    *   what the winner did
    */
  def sameRows(did: String): Clash = {
    val found = clash(did, removedOf(removes))
    val files = info.actions.collect { case file: FileAction => file }
    val adds = files.collect { case add: AddFile => add }
    lazy val copyNone = CopiedRows.of(info.commitInfo, files).contains(0L) &&
      CopiedRows.of(winner.commitInfo, winner.addedFiles ++ winner.removedFiles).contains(0L)
    val named =
      try
        among(rows.deadInBoth(adds, removes, copyNone), found.kind, did).map(_.where)
          .filter(_.rows.nonEmpty)
      catch { case NonFatal(error) if !JudgingJob.isCancelled(error) => None }
    named.fold(found) { where =>
      val same =
        if (did.startsWith(Rebases.inOneFile(""))) Rebases.sameRows(Overlap.counted(where.rows))
        else did
      val by = where.predicate.fold("")(sql => s", by its condition ${Overlap.short(sql)}")
      found.copy(
        did = same + by,
        where = where.copy(files = found.where.files, undecided = false)
      )
    }
  }

  private def inAdded: Option[Clash] = {
    val isBlindAppend = winner.isBlindAppendOption.contains(true)
    if (Isolation.countsAdded(level.toString, isBlindAppend, info.metadataChanged)) inAddedRows
    else None
  }

  /** The attempt's predicates select rows that the winner added. */
  def inAddedRows: Option[Clash] = among(rows.added, ConcurrentAppend, "wrote")

  private def among(
      files: => Seq[AddFile],
      kind: ConflictKind.OfData,
      what: String
  ): Option[Clash] =
    try reads.among(files, kind, what)
    catch {
      case _: FileNotFoundException =>
        val removed = winner.removedFiles.map(_.path).take(Overlap.FilesShown)
        val did = s"$what rows, but which is not known: ${RowVectors.Gone}"
        Some(Clash(ConcurrentDeleteRead, did, Overlap(removed, undecided = true)))
    }

  private def readFiles = info.readFiles.map(_.path)

  private def removedOf(files: Set[String]): Seq[String] =
    winner.removedFiles.map(_.path).filter(files)

  private def removed(files: Seq[String], did: String): Option[Clash] =
    Option.when(files.nonEmpty)(clash(did, files))

  private def clash(did: String, files: Seq[String]): Clash = Clash(
    ConflictKind.of(
      attempt.asWinner(winner).operationClass,
      attempt.operationClass,
      winnerAddedData = false,
      winnerRemoved = true,
      onlyRemove
    ),
    did,
    Overlap(files.take(Overlap.FilesShown))
  )
}
