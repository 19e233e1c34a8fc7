package io.interlock.coordinator

import java.util.concurrent.locks.LockSupport

import scala.collection.mutable

/** Threads in the order in which they came. */
final private[coordinator] class Line {

  /** Guarded by `this`. */
  private val threads = mutable.LinkedHashSet.empty[Thread]

  def join(): Unit = synchronized(threads += Thread.currentThread()): Unit

  def leave(): Unit = {
    synchronized(threads -= Thread.currentThread())
    wake(1)
  }

  def isFirst: Boolean = synchronized(threads.headOption.contains(Thread.currentThread()))

  def isEmpty: Boolean = synchronized(threads.isEmpty)

  /** Wakes the first of those who wait. */
  def wake(most: Int): Unit = synchronized(threads.take(most).foreach(LockSupport.unpark))

  /** Waits until it is woken, and no longer than that.
    *
    * @throws InterruptedException
    *   at once, where the thread was interrupted
    */
  def await(nanos: Long): Unit = {
    LockSupport.parkNanos(this, nanos)
    Line.throwIfInterrupted()
  }
}

private[coordinator] object Line {

  /** Raises InterruptedException where the thread was interrupted. */
  def throwIfInterrupted(): Unit = if (Thread.interrupted()) throw new InterruptedException
}
