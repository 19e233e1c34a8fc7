package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.SerialFacts
import io.interlock.spark.commits.CommitTags
import org.apache.spark.sql.delta.WinningCommitSummary

private[interlock] object SerialOrder {

  /** What the serial order depends on in a winner's actions. */
  def facts(winner: WinningCommitSummary): SerialFacts = SerialFacts(
    winner.commitVersion,
    isBlindAppend = winner.isBlindAppendOption.contains(true),
    changesData = (winner.addedFiles ++ winner.removedFiles).exists(_.dataChange),
    readsWhatItChanges = readsWhatItChanges(winner),
    readVersion = winner.commitInfo.flatMap(_.readVersion),
    added = winner.addedFiles.map(_.path).toSet,
    removed = winner.removedFiles.map(_.path).toSet
  )

  /** UPDATE and DELETE do, unless they say otherwise, which only those of Interlock can. */
  private def readsWhatItChanges(winner: WinningCommitSummary): Boolean =
    winner.commitInfo.exists(info =>
      Set("UPDATE", "DELETE")(info.operation) && info.tags.exists(tags =>
        tags.contains(CommitTags.Class) && !tags.contains(CommitTags.ReadsOthers)
      )
    )
}
