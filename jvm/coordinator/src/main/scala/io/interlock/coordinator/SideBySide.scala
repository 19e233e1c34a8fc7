package io.interlock.coordinator

import java.util.concurrent.{CompletableFuture, CompletionException, Executors}

import scala.util.{Failure, Try}

/** Work on several files of one batch at once: syncing many of them takes hardly longer than syncing
  * one. Each batch has threads of its own, so that a disk that does not answer holds up no other one.
  */
private[coordinator] object SideBySide {
  private val MostThreads = 16

  private val threads = Executors.newCachedThreadPool { work =>
    val thread = new Thread(work, "interlock-commit-file")
    thread.setDaemon(true)
    thread
  }

  /** What became of each item, in the same order; an interrupt does not end the wait. */
  def apply[A, B](items: Seq[A])(work: A => B): Seq[Try[B]] =
    if (items.size <= 1) items.map(item => Try(work(item)))
    else {
      val shares = items.indices.groupBy(_ % MostThreads).values.toVector
      val tasks = shares.map(share =>
        CompletableFuture.supplyAsync(() => share.map(i => Try(work(items(i)))), threads)
      )
      val done = shares.zip(tasks).flatMap { case (share, task) =>
        share.zip(
          try task.join()
          catch { case broken: CompletionException => share.map(_ => Failure(broken.getCause)) }
        )
      }
      done.sortBy(_._1).map(_._2)
    }
}
