package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.SerialFacts
import io.interlock.spark.commits.CommitTags
import org.apache.spark.sql.delta.WinningCommitSummary

private[interlock] object SerialOrder {

  /** The facts in a winner's actions on which the serial order depends. */
  def facts(winner: WinningCommitSummary): SerialFacts = SerialFacts(
    winner.commitVersion,
    isBlindAppend = winner.isBlindAppendOption.contains(true),
    changesData = (winner.addedFiles ++ winner.removedFiles).exists(_.dataChange),
    readsWhatItChanges = readsWhatItChanges(winner),
    readVersion = winner.commitInfo.flatMap(_.readVersion),
    added = winner.addedFiles.map(_.path).toSet,
    removed = winner.removedFiles.map(_.path).toSet
  )

  /** True for UPDATE and DELETE, unless their tag says that they read other rows; only Interlock
    * writes that tag.
    */
  private def readsWhatItChanges(winner: WinningCommitSummary): Boolean =
    winner.commitInfo.exists(info =>
      Set("UPDATE", "DELETE")(info.operation) && info.tags.exists(tags =>
        tags.contains(CommitTags.Class) && !tags.contains(CommitTags.ReadsOthers)
      )
    )
}
