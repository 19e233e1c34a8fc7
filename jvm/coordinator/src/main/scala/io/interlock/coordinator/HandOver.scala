package io.interlock.coordinator

import java.util.concurrent.locks.ReentrantLock

import scala.concurrent.duration._

import io.interlock.coordinator.ProcessLock._

/** Lets the processes that commit to one table take turns, from the time that one has lost a
  * version to another. Without turns the process that is ahead stays ahead, because its
  * transactions are already judged against its own last commits.
  *
  * If a turn does not end, because its process was stopped, the others wait for it once. Then they
  * go on without the lock until it is free again.
  *
  * [[mayCommit]], [[leaveLine]], [[pause]] and [[resume]] are called only by the thread that is first
  * in line; all other methods are thread-safe.
  *
  * @param now
  *   the time in nanoseconds
  */
final private[coordinator] class HandOver(
    lock: ProcessLock,
    now: () => Long = () => System.nanoTime
) {
  import HandOver._

  /** Held while `lock` is used, which may be a call to a database. */
  private val using = new ReentrantLock

  @volatile private var contendedUntil = now()
  @volatile private var since: Option[Long] = scala.None
  @volatile private var isInLine = false
  @volatile private var isOrdered = false

  // Used only by the thread that is first in line.
  private var waitsFor: Option[(Long, Long)] = scala.None
  private var isStuck = false
  private var asksFrom = now()
  private var seenAt = now()
  private var lookedAt = now()
  private var pausedAt: Option[Long] = scala.None

  /** To be called when another process has taken a version that this one wanted. */
  def lost(): Unit = contendedUntil = now() + Memory

  /** Whether the processes take turns now, so that a loser does not need to pause. */
  def isInForce: Boolean = isOrdered && isContended

  private def isContended = now() - contendedUntil < 0

  /** Whether the process's turn is over: it must send all commits that it has judged and then call
    * [[pass]].
    */
  def isOver: Boolean = since.exists(now() - _ >= Longest)

  /** Gives up the turn, or the place in the line for it, unless a thread is just asking. Other
    * processes get the time to ask first.
    */
  def pass(): Unit =
    if ((since.nonEmpty || isInLine) && using.tryLock())
      try {
        if (isOver) asksFrom = now() + Courtesy
        lock.release()
        since = scala.None
        isInLine = false
      } finally using.unlock()

  /** Gives up the place in the line, but not the turn. */
  def leaveLine(): Unit = if (isInLine) pass()

  /** To be called while no transaction of the process may commit, whoever has the turn. The process
    * keeps its turn, whose time stands still until it is resumed, or its place in the line.
    */
  def pause(): Unit = pausedAt = pausedAt.orElse(Some(now()))

  def resume(): Unit = pausedAt.foreach { from =>
    pausedAt = scala.None
    using.lock()
    try since = since.map(_ + now() - from)
    finally using.unlock()
  }

  /** Whether the process may judge and commit now; asks for the turn if other processes want it
    * too.
    */
  def mayCommit(): Boolean = {
    look()
    if (since.nonEmpty) true
    else if (!isContended) {
      leaveLine()
      true
    } else if (now() < asksFrom) false
    else {
      using.lock()
      val answer =
        try {
          val answer = lock.ask()
          if (answer == Mine) since = Some(now())
          isInLine = answer.isInstanceOf[Theirs]
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

  /** A process that commits often checks from time to time whether another one waits. */
  private def look(): Unit = {
    val time = now()
    val isBusy = time - seenAt < Busy
    seenAt = time
    if (!isContended && isBusy && time - lookedAt >= BetweenLooks) {
      lookedAt = time
      using.lock()
      try if (lock.isWanted) lost()
      finally using.unlock()
    }
  }
}

private[coordinator] object HandOver {

  /** How long a process may keep the turn while others want it. */
  private val Longest = 100.millis.toNanos

  /** How long others wait for a turn that does not end. */
  private val Patience = 2.seconds.toNanos

  /** How long the processes take turns after one last lost a version to another. */
  private val Memory = 5.seconds.toNanos

  /** How long a process lets others ask for the turn; they ask every few milliseconds. */
  private val Courtesy = 10.millis.toNanos

  private val Busy = 100.millis.toNanos
  private val BetweenLooks = 100.millis.toNanos
}
