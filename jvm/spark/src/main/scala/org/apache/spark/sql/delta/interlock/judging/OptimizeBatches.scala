package org.apache.spark.sql.delta.interlock.judging

import java.lang.ref.WeakReference

import org.apache.spark.sql.delta.{LogSegment, Snapshot}

/** The commits that an OPTIMIZE has made so far. With `spark.databricks.delta.optimize.batchSize` it
  * makes several, one after the other on one thread, all from the snapshot that it has read. So an
  * earlier one is a winner for a later one, but not another job.
  */
private[interlock] object OptimizeBatches {
  final private case class Made(from: WeakReference[LogSegment], txnIds: Set[String])

  private val made = new ThreadLocal[Made]

  /** Remembers a commit of this thread.
    *
    * @param from
    *   the snapshot from which it was made
    */
  def add(from: Snapshot, txnId: String): Unit =
    made.set(Made(new WeakReference(from.logSegment), before(from) + txnId))

  /** The transactions that this thread has committed from the same snapshot. */
  def before(from: Snapshot): Set[String] =
    Option(made.get).filter(_.from.get eq from.logSegment).fold(Set.empty[String])(_.txnIds)
}
