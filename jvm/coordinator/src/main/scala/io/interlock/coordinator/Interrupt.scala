package io.interlock.coordinator

object Interrupt {

  /** Runs work whose requests an interrupt of this thread would end at once. An interrupt from before
    * is set again afterwards.
    */
  def setAside[A](work: => A): A = {
    val wasInterrupted = Thread.interrupted()
    try work
    finally if (wasInterrupted) Thread.currentThread().interrupt()
  }
}
