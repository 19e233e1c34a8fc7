package org.apache.spark.sql.delta.interlock.judging

import org.apache.spark.sql.delta.WinningCommitSummary

/** The last commits that each thread has made. They are no other jobs: the
  * program has made them after what it had read before, and an OPTIMIZE with
  * `spark.databricks.delta.optimize.batchSize` makes several from the snapshot that it has read.
  */
private[interlock] object OwnCommits {
  private val Kept = 10000
  private val made = ThreadLocal.withInitial(() => Vector.empty[String])

  def add(txnId: String): Unit = made.set((made.get :+ txnId).takeRight(Kept))

  def has(winner: WinningCommitSummary): Boolean =
    winner.commitInfo.flatMap(_.txnId).exists(made.get.contains)
}
