package org.apache.spark.sql.delta.interlock.rebase

import org.apache.spark.sql.delta.CurrentTransactionInfo
import org.apache.spark.sql.delta.actions.{Action, AddFile, RemoveFile}

/** The metrics that the history shows, kept right when a rebase changes a commit's actions. */
private[interlock] object Metrics {

  /** The attempt with other actions, and with its metrics on files and deletion vectors counted
    * again.
    */
  def recounted(info: CurrentTransactionInfo, actions: Seq[Action]): CurrentTransactionInfo = {
    lazy val counts = count(actions)
    info.copy(
      actions = actions,
      commitInfo = info.commitInfo.map(commit =>
        commit.copy(operationMetrics =
          commit.operationMetrics.map(shown =>
            shown ++ counts.view.filterKeys(shown.contains)
          )
        )
      )
    )
  }

  private def count(actions: Seq[Action]): Map[String, String] = {
    val adds = actions.collect { case add: AddFile => add.path -> add }.toMap
    val removes = actions.collect { case remove: RemoveFile => remove }
    val (marked, removed) = removes.partition(remove => adds.contains(remove.path))
    val added = (adds -- marked.map(_.path)).values
    def grown(hadVector: Boolean) = marked.count(remove =>
      adds(remove.path).deletionVector != null && (remove.deletionVector != null) == hadVector
    )
    Map(
      "numRemovedFiles" -> removed.size.toLong,
      "numRemovedBytes" -> removed.flatMap(_.size).sum,
      "numAddedFiles" -> added.size.toLong,
      "numAddedBytes" -> added.map(_.size).sum,
      "numDeletionVectorsAdded" -> grown(hadVector = false).toLong,
      "numDeletionVectorsUpdated" -> grown(hadVector = true).toLong,
      "numDeletionVectorsRemoved" -> removed.count(_.deletionVector != null).toLong
    ).view.mapValues(_.toString).toMap
  }
}
