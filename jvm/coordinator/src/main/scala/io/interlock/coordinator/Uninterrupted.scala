package io.interlock.coordinator

import java.util.concurrent.FutureTask

import scala.annotation.tailrec

private[coordinator] object Uninterrupted {

  /** Runs `work` on a thread of its own, which has the user and the class loader of the calling one;
    * the caller waits, and an interrupt of it stays set and ends nothing.
    *
    * @throws java.util.concurrent.ExecutionException
    *   the cause of which is what `work` has thrown
    */
  def apply[A](name: String)(work: => A): A = {
    val task = new FutureTask[A](() => work)
    val thread = new Thread(task, name)
    thread.setDaemon(true)
    thread.start()
    @tailrec def wait(interrupted: Boolean): Boolean = {
      val next =
        try {
          thread.join()
          None
        } catch { case _: InterruptedException => Some(true) }
      next match {
        case None => interrupted
        case Some(again) => wait(again)
      }
    }
    if (wait(Thread.interrupted())) Thread.currentThread().interrupt()
    task.get()
  }
}
