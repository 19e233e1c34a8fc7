package org.apache.spark.sql.delta.interlock.judging

import org.apache.spark.sql.delta.WinningCommitSummary

/** The last commits of each thread, which are no other jobs: it has made them after what it had
  * read, or in one OPTIMIZE (`spark.databricks.delta.optimize.batchSize`).
  */
private[interlock] object OwnCommits {
  private val Kept = 10000
  private val made = ThreadLocal.withInitial(() => Vector.empty[String])

  def add(txnId: String): Unit = made.set((made.get :+ txnId).takeRight(Kept))

  def has(winner: WinningCommitSummary): Boolean =
    winner.commitInfo.flatMap(_.txnId).exists(made.get.contains)
}
