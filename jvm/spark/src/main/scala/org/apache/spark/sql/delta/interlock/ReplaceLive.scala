package org.apache.spark.sql.delta.interlock

import io.interlock.rules.AttemptScope
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.{CurrentTransactionInfo, WinningCommitSummary}

/** The rebase of an overwrite over one winner: its RemoveFiles become the files that are live in
  * its scope after the winner, each with its current deletion vector. Its own adds stay.
  *
  * Applied winner by winner, from the snapshot that the plan read; no listing and no read of data.
  */
private[interlock] object ReplaceLive {

  def rebase(
      info: CurrentTransactionInfo,
      winner: WinningCommitSummary,
      scope: AttemptScope
  ): CurrentTransactionInfo = {
    val gone = winner.removedFiles.map(fileId).toSet
    val stillThere = info.actions.filter {
      case remove: RemoveFile => !gone(fileId(remove))
      case _ => true
    }
    val now = System.currentTimeMillis()
    val newlyLive = winner.addedFiles
      .filter(add => scope.coversTable || scope.covers(add.partitionValues))
      .map(_.removeWithTimestamp(now, dataChange = true))
    Metrics.recounted(info, stillThere ++ newlyLive)
  }

  /** A file is identified by its path and its deletion vector, never by its path alone. */
  private def fileId(file: RemoveFile): (String, Option[String]) =
    (file.path, file.getDeletionVectorUniqueId)
}
