package io.interlock.coordinator

import java.util.concurrent.locks.LockSupport

import scala.collection.mutable

/** A line of waiting threads, in the order in which they came. */
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

  /** Wakes the first `most` threads in line. */
  def wake(most: Int): Unit = synchronized(threads.take(most).foreach(LockSupport.unpark))

  /** Waits until the thread is woken, at most for `nanos`.
    *
    * @throws InterruptedException
    *   at once, if the thread was interrupted
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
