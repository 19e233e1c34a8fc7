package io.interlock.spark.compaction

import org.apache.spark.sql.delta.DeltaConcurrentModificationException

/** Makes a policy's FAIL on a compaction final.
  *
  * After a conflict Delta's `commitAndRetry` opens a second transaction behind the winner, and would
  * commit the same outputs if their inputs are still live. The error of the first one is raised
  * again where the second one would start.
  */
object FailedCompaction {
  private val last = new ThreadLocal[DeltaConcurrentModificationException]

  /** To be called when a compaction fails by its policy, on the thread that commits. */
  def remember(error: DeltaConcurrentModificationException): Unit = last.set(error)

  /** To be called when a transaction starts.
    *
    * @throws DeltaConcurrentModificationException
    *   the error of the compaction that Delta is about to try again
    */
  def refuseRetry(): Unit = {
    val failed = Option(last.get)
    last.remove()
    failed.filter(_ => isRetry).foreach(throw _)
  }

  private def isRetry: Boolean =
    StackWalker.getInstance.walk(_.anyMatch(_.getMethodName.endsWith("commitAndRetry")))
}
