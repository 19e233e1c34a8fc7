package io.interlock.coordinator

import java.io.InterruptedIOException
import java.nio.channels.ClosedByInterruptException

/** The chain of causes of a failure. */
object Causes {
  private val LongestChain = 20

  /** The failure, its cause, and so on to the innermost one. */
  def of(failure: Throwable): Seq[Throwable] =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(LongestChain).toVector

  /** Whether a thread was interrupted. Timeouts of connections are of the same class and no
    * interrupts, whatever client raises them.
    */
  def areInterrupt(failure: Throwable): Boolean = {
    val chain = of(failure)
    val isTimeout = chain.exists(_.getClass.getSimpleName.endsWith("TimeoutException"))
    chain.exists {
      case _: InterruptedException | _: ClosedByInterruptException => true
      case _: InterruptedIOException => !isTimeout
      case _ => false
    }
  }
}
