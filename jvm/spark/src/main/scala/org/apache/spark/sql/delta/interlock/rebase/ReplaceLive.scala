package org.apache.spark.sql.delta.interlock.rebase

import io.interlock.rules.{AttemptScope, Partition}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.{CurrentTransactionInfo, WinningCommitSummary}

/** The rebase of an overwrite over one winner: its RemoveFiles become the files that are live in what
  * it replaces after the winner, each with its current deletion vector. Its own adds stay.
  *
  * Applied winner by winner, from the snapshot that the plan read; no listing and no read of data.
  */
private[interlock] object ReplaceLive {

  /** @param replaced
    *   what the overwrite replaces
    * @param partitionOf
    *   the partition of a file of the winner; None where the log does not tell
    * @return
    *   a Left where the log does not tell whether a file of the winner is to be replaced
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
