package io.interlock.coordinator

import scala.concurrent.duration._

/** Lets the processes that commit to one table do so by turns, once they have met: otherwise the one
  * that is ahead stays ahead, for what it has judged is judged against its own commits.
  *
  * A process that does not give its turn up, since it was stopped, is waited for once; then the others
  * go on without, until the lock can be had again. Serves many threads.
  *
  * @param now
  *   in nanoseconds
  */
final private[coordinator] class HandOver(
    lock: ProcessLock,
    now: () => Long = () => System.nanoTime
) {
  import HandOver._

  // All guarded by `this`.
  private var since: Option[Long] = None
  private var askedAt: Option[Long] = None
  private var asksFrom = now()
  private var contendedUntil = now()
  private var seenAt = now()
  private var lookedAt = now()
  private var isStuck = false

  /** To be called when another process has taken a version that this one wanted. */
  def lost(): Unit = synchronized { contendedUntil = now() + Memory }

  /** Whether the processes wait for each other now. */
  def isInForce: Boolean = synchronized {
    lock != ProcessLock.None && !isStuck && now() - contendedUntil < 0
  }

  /** Whether the process has had its turn: all that it has judged is to be sent, then [[pass]]. */
  def isOver: Boolean = synchronized(since.exists(now() - _ >= Longest))

  /** Gives the turn up, or the place among those who wait for it. Who has had it for long lets the
    * others ask first.
    */
  def pass(): Unit = synchronized {
    if (isOver) asksFrom = now() + Courtesy
    if (since.nonEmpty || askedAt.nonEmpty) lock.release()
    since = None
    askedAt = None
  }

  /** Whether the process may judge and commit now; asks for the turn where others want it too. */
  def mayCommit(): Boolean = synchronized {
    if (since.nonEmpty || !isContended()) true
    else if (now() < asksFrom) false
    else if (lock.tryTake()) {
      since = Some(now())
      askedAt = None
      isStuck = false
      true
    } else {
      contendedUntil = now() + Memory
      askedAt = askedAt.orElse(Some(now()))
      isStuck ||= askedAt.exists(now() - _ >= Patience)
      isStuck
    }
  }

  /** Who commits often looks now and then whether another one waits. */
  private def isContended(): Boolean = {
    val time = now()
    val isBusy = time - seenAt < Busy
    seenAt = time
    if (time - contendedUntil >= 0 && isBusy && time - lookedAt >= BetweenLooks) {
      lookedAt = time
      if (lock.isWanted) lost()
    }
    time - contendedUntil < 0
  }
}

private[coordinator] object HandOver {

  /** How long a process may keep the turn while others want it. */
  private val Longest = 200.millis.toNanos

  /** How long a process is waited for that keeps it all the same. */
  private val Patience = 2.seconds.toNanos

  /** How long after the last meeting the processes take turns. */
  private val Memory = 5.seconds.toNanos

  /** For others to ask, who do so every millisecond. */
  private val Courtesy = 5.millis.toNanos

  private val Busy = 100.millis.toNanos
  private val BetweenLooks = 50.millis.toNanos
}
