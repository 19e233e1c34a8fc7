package io.interlock.coordinator

import java.security.PrivilegedAction
import java.util.concurrent.FutureTask

import org.apache.hadoop.security.UserGroupInformation

private[coordinator] object Uninterrupted {

  /** Runs `work` on a new thread with the user and the class loader of the caller. The caller waits
    * for it; an interrupt of the caller stays set and does not end the wait or the work.
    *
    * @throws java.util.concurrent.ExecutionException
    *   with the exception of `work` as its cause
    */
  def apply[A](name: String)(work: => A): A = {
    val task = new FutureTask[A](() => work)
    // Since JDK 24 a thread does not inherit the user.
    val user = UserGroupInformation.getCurrentUser
    val asUser: Runnable = () => user.doAs((() => task.run()): PrivilegedAction[Unit])
    val thread = new Thread(asUser, name)
    thread.setDaemon(true)
    thread.start()
    var isInterrupted = Thread.interrupted()
    while (thread.isAlive)
      try thread.join()
      catch { case _: InterruptedException => isInterrupted = true }
    if (isInterrupted) Thread.currentThread().interrupt()
    task.get()
  }
}
