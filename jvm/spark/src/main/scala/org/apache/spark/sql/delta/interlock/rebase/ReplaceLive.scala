package org.apache.spark.sql.delta.interlock.rebase

import io.interlock.rules.{AttemptScope, Partition}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.{CurrentTransactionInfo, WinningCommitSummary}

/** Rebases an overwrite over one winner: it then removes all files that are live after the winner
  * in the scope it replaces, each with its current deletion vector. Its own AddFiles stay.
  *
  * Applied winner by winner, starting from the snapshot that was read; lists no files and reads no
  * data.
  */
private[interlock] object ReplaceLive {

  /** @param replaced
    *   the scope that the overwrite replaces
    * @param partitionOf
    *   the partition of a file of the winner; None if the log does not tell it
    * @return
    *   a Left if the log does not tell whether a file of the winner must be replaced
    */
  def rebase(
      info: CurrentTransactionInfo,
      winner: WinningCommitSummary,
      replaced: AttemptScope,
      partitionOf: AddFile => Option[Partition]
  ): Either[String, CurrentTransactionInfo] = {
    def isReplaced(add: AddFile) =
      if (replaced.coversTable) Some(true)
      else partitionOf(add).map(replaced.covers)
    val gone = winner.removedFiles.map(fileId).toSet
    winner.addedFiles.find(isReplaced(_).isEmpty) match {
      case Some(add) => Left(s"the log does not tell which partition the file ${add.path} is of")
      case None =>
        val stillThere = info.actions.filter {
          case remove: RemoveFile => !gone(fileId(remove))
          case _ => true
        }
        val now = System.currentTimeMillis()
        val newlyLive = winner.addedFiles
          .filter(isReplaced(_).contains(true))
          .map(_.removeWithTimestamp(now, dataChange = true))
        Right(Metrics.recounted(info, stillThere ++ newlyLive))
    }
  }

  /** A file is identified by its path and its deletion vector, never by its path alone. */
  private def fileId(file: RemoveFile): (String, Option[String]) =
    (file.path, file.getDeletionVectorUniqueId)
}
