package io.interlock.coordinator

/** The chain of causes of a failure. */
object Causes {
  private val LongestChain = 20

  /** The failure, its cause, and so on to the innermost one. */
  def of(failure: Throwable): Seq[Throwable] =
    Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(LongestChain).toVector
}
