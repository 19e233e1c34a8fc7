package io.interlock.coordinator

import java.util.concurrent.locks.ReentrantLock

import scala.concurrent.duration._

import io.interlock.coordinator.ProcessLock._

/** Lets the processes that commit to one table do so by turns, once they have met: otherwise the one
  * that is ahead stays ahead, for what it has judged is judged against its own commits.
  *
  * A turn that does not end, since its process was stopped, is waited for once; then the others go on
  * without, until the lock can be had again.
  *
  * [[mayCommit]] is for who is first in line; the rest serves many threads.
  *
  * @param now
  *   in nanoseconds
  */
final private[coordinator] class HandOver(
    lock: ProcessLock,
    now: () => Long = () => System.nanoTime
) {
  import HandOver._

  /** Held while `lock` is used, which may take a call to a database. */
  private val using = new ReentrantLock

  @volatile private var contendedUntil = now()
  @volatile private var since: Option[Long] = scala.None
  @volatile private var isOrdered = false

  // What is known of the process that is first in line.
  private var waitsFor: Option[(Long, Long)] = scala.None
  private var isStuck = false
  private var asksFrom = now()
  private var seenAt = now()
  private var lookedAt = now()

  /** To be called when another process has taken a version that this one wanted. */
  def lost(): Unit = contendedUntil = now() + Memory

  /** Whether the processes wait for each other now, so that nobody needs to stand back. */
  def isInForce: Boolean = isOrdered && isContended

  private def isContended = now() - contendedUntil < 0

  /** Whether the process has had its turn: all that it has judged is to be sent, then [[pass]]. */
  def isOver: Boolean = since.exists(now() - _ >= Longest)

  /** Gives the turn up, unless somebody is about to ask for it. Others are let ask first. */
  def pass(): Unit =
    if (since.nonEmpty && using.tryLock())
      try {
        if (isOver) asksFrom = now() + Courtesy
        lock.release()
        since = scala.None
      } finally using.unlock()

  /** Whether the process may judge and commit now; asks for the turn where others want it too. */
  def mayCommit(): Boolean = {
    look()
    if (since.nonEmpty || !isContended) true
    else if (now() < asksFrom) false
    else {
      using.lock()
      val answer =
        try {
          val answer = lock.ask()
          if (answer == Mine) since = Some(now())
          answer
        } finally using.unlock()
      isOrdered = answer != Missing && !isPatienceOver(answer)
      !answer.isInstanceOf[Theirs] || isStuck
    }
  }

  private def isPatienceOver(answer: Answer): Boolean = {
    answer match {
      case Theirs(turn) =>
        contendedUntil = now() + Memory
        if (!waitsFor.exists(_._1 == turn)) {
          waitsFor = Some(turn -> now())
          isStuck = false
        }
        isStuck ||= waitsFor.exists(now() - _._2 >= Patience)
      case _ =>
        waitsFor = scala.None
        isStuck = false
    }
    isStuck
  }

  /** Who commits often looks now and then whether another one waits. */
  private def look(): Unit = {
    val time = now()
    val isBusy = time - seenAt < Busy
    seenAt = time
    if (!isContended && isBusy && time - lookedAt >= BetweenLooks) {
      lookedAt = time
      if (lock.isWanted) lost()
    }
  }
}

private[coordinator] object HandOver {

  /** How long a process may keep the turn while others want it. */
  private val Longest = 100.millis.toNanos

  /** How long one turn is waited for. */
  private val Patience = 2.seconds.toNanos

  /** How long after the last meeting the processes take turns. */
  private val Memory = 5.seconds.toNanos

  /** For others to ask, who do so every few milliseconds. */
  private val Courtesy = 10.millis.toNanos

  private val Busy = 100.millis.toNanos
  private val BetweenLooks = 100.millis.toNanos
}
