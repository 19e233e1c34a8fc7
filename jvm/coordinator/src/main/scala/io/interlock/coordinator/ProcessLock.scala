package io.interlock.coordinator

/** What one process at a time holds while it commits to a table. Advisory: a store is right without
  * it, and who cannot have it in time commits all the same.
  *
  * Used by one thread at a time. No method throws.
  */
private[coordinator] trait ProcessLock {
  import ProcessLock._

  /** Whether another process holds it. */
  def isWanted: Boolean

  /** Takes it, if nobody holds it. */
  def ask(): Answer

  /** Gives it up. */
  def release(): Unit
}

private[coordinator] object ProcessLock {

  sealed trait Answer

  /** This process holds it. */
  case object Mine extends Answer

  /** Another process holds it.
    *
    * @param turn
    *   another number for each turn that somebody has
    */
  final case class Theirs(turn: Long) extends Answer

  /** There is none, or it cannot be used. */
  case object Missing extends Answer

  /** Where processes have no way to agree. */
  object None extends ProcessLock {
    override def isWanted: Boolean = false
    override def ask(): Answer = Missing
    override def release(): Unit = ()
  }
}
