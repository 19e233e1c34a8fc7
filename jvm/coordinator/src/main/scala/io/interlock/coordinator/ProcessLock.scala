package io.interlock.coordinator

/** What one process at a time holds while it commits to a table. Advisory: a store is right without
  * it, and who cannot have it in time commits all the same.
  *
  * Used by one thread at a time. No method throws, or waits for another process.
  */
private[coordinator] trait ProcessLock {

  /** Whether another process holds it, or has asked for it. */
  def isWanted: Boolean

  /** Asks for it, in the order of those who ask, and says whether it is held now. */
  def tryTake(): Boolean

  /** Gives it up, or the place among those who ask. */
  def release(): Unit
}

private[coordinator] object ProcessLock {

  /** Where processes have no way to agree: each holds it, always. */
  object None extends ProcessLock {
    override def isWanted: Boolean = false
    override def tryTake(): Boolean = true
    override def release(): Unit = ()
  }
}
