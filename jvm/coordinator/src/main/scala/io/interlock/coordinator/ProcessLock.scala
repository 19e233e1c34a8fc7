package io.interlock.coordinator

/** A lock that one process at a time holds while it commits to a table. It is advisory: a store is
  * correct without it, and a process that cannot have it in time commits without it.
  *
  * For use by one thread at a time. No method throws.
  */
private[coordinator] trait ProcessLock {
  import ProcessLock._

  /** Whether another process holds it. */
  def isWanted: Boolean

  /** Takes it if no process holds it. Otherwise the process may keep a place in the line for it. */
  def ask(): Answer

  /** Gives it up, or the place in the line for it. */
  def release(): Unit
}

private[coordinator] object ProcessLock {

  sealed trait Answer

  /** This process holds it. */
  case object Mine extends Answer

  /** Another process holds it.
    *
    * @param turn
    *   a number that is different for each turn
    */
  final case class Theirs(turn: Long) extends Answer

  /** There is no lock, or it cannot be used. */
  case object Missing extends Answer

  /** For tables whose processes have no lock. */
  object None extends ProcessLock {
    override def isWanted: Boolean = false
    override def ask(): Answer = Missing
    override def release(): Unit = ()
  }
}
