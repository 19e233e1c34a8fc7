package io.interlock.spark.compaction

import org.apache.spark.sql.delta.DeltaConcurrentModificationException

/** Keeps Delta from retrying a compaction that a policy has failed.
  *
  * After a conflict Delta's `commitAndRetry` starts a second transaction, which reads a version
  * after the winner and would commit the same outputs if their inputs are still live. The first
  * transaction's error is raised again when the second one starts.
  */
object FailedCompaction {
  private val last = new ThreadLocal[DeltaConcurrentModificationException]

  /** Remembers the error of a compaction that its policy has failed; called on the committing
    * thread.
    */
  def remember(error: DeltaConcurrentModificationException): Unit = last.set(error)

  /** Called when a transaction starts.
    *
    * @throws DeltaConcurrentModificationException
    *   the error of the compaction that Delta is about to retry
    */
  def refuseRetry(): Unit = {
    val failed = Option(last.get)
    last.remove()
    failed.filter(_ => isRetry).foreach(throw _)
  }

  private def isRetry: Boolean =
    StackWalker.getInstance.walk(_.anyMatch(_.getMethodName.endsWith("commitAndRetry")))
}
