package io.interlock.coordinator

import java.util.concurrent.{CompletableFuture, Executors}

import scala.util.{Failure, Success, Try}

/** Work on several files of one batch at once: syncing many of them takes hardly longer than syncing
  * one. Each batch has threads of its own, so that a disk that does not answer holds up no other one.
  */
private[coordinator] object SideBySide {
  private val MostThreads = 16

  /** They inherit nothing of the statement that has started them. */
  private val threads = Executors.newCachedThreadPool { work =>
    val thread = new Thread(null, work, "interlock-commit-file", 0, false)
    thread.setContextClassLoader(null)
    thread.setDaemon(true)
    thread
  }

  /** What became of each item, in the same order; an interrupt does not end the wait. Where no thread
    * can be started, the caller does the work.
    */
  def apply[A, B](items: Seq[A])(work: A => B): Seq[Try[B]] =
    if (items.size <= 1) items.map(done(work))
    else {
      val shares = items.indices.groupBy(_ % MostThreads).values.toVector
      val tasks = shares.map { share =>
        def run() = share.map(i => i -> done(work)(items(i)))
        try CompletableFuture.supplyAsync(() => run(), threads)
        catch { case _: OutOfMemoryError => CompletableFuture.completedFuture(run()) }
      }
      tasks.flatMap(_.join()).sortBy(_._1).map(_._2)
    }

  /** Also catches what is no exception: the files of the other items are known then. */
  private def done[A, B](work: A => B)(item: A): Try[B] =
    try Success(work(item))
    catch { case failed: Throwable => Failure(failed) }
}
