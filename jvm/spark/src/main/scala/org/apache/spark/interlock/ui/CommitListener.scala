package org.apache.spark.interlock.ui

import org.apache.spark.interlock.ui.SparkListenerInterlockCommit.{Committed, Rejected}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.status.KVUtils.KVIndexParam
import org.apache.spark.util.kvstore.{KVIndex, KVStore}

/** Puts what the tab shows into the store of a UI; of the verdicts the newest 1000. */
final private[ui] class CommitListener(store: KVStore) extends SparkListener {
  private var counts = new CommitCounts(0, 0, 0)

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case commit: SparkListenerInterlockCommit =>
      if (commit.outcome != Committed) {
        store.write(new StoredVerdict(counts.verdicts, commit))
        store.delete(classOf[StoredVerdict], counts.verdicts - 1000)
      }
      counts = counts.and(commit.outcome)
      store.write(counts)
    case _ =>
  }
}

/** A commit that was rejected or passed others, by its number in the application. */
final private[ui] class StoredVerdict(
    @KVIndexParam val number: Long,
    val commit: SparkListenerInterlockCommit
)

/** @param made
  *   commits, those that passed others included
  * @param rebased
  *   commits that passed others
  */
final private[ui] class CommitCounts(val made: Long, val rebased: Long, val rejected: Long) {
  @KVIndex def id: String = "counts"

  def verdicts: Long = rebased + rejected

  def and(outcome: String): CommitCounts = outcome match {
    case Committed => new CommitCounts(made + 1, rebased, rejected)
    case Rejected => new CommitCounts(made, rebased, rejected + 1)
    case _ => new CommitCounts(made + 1, rebased + 1, rejected)
  }
}
