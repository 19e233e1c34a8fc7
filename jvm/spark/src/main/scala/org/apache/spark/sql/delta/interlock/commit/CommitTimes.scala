package org.apache.spark.sql.delta.interlock.commit

import scala.collection.mutable

/** A part of the time that a commit takes. */
sealed abstract private[interlock] class TimedPhase(val name: String)

private[interlock] object TimedPhase {

  /** Waiting for claims of other jobs, for the commits before it in this process, for the turn of
    * this process, and after lost races.
    */
  case object Turn extends TimedPhase("turn")

  /** Finding and reading the commits that it is judged against. */
  case object Winners extends TimedPhase("winners")

  /** Judging it against them, and rebasing it. */
  case object Judge extends TimedPhase("judge")

  /** Deriving the `.crc` and writing it. */
  case object Checksum extends TimedPhase("checksum")

  /** From the finished actions until the store has told what became of the commit, which may wait
    * for commits that were handed in before it.
    */
  case object Store extends TimedPhase("store")

  /** Making the snapshot after the commit. */
  case object Snapshot extends TimedPhase("snapshot")

  val all: Seq[TimedPhase] = Seq(Turn, Winners, Judge, Checksum, Store, Snapshot)
}

/** How long a commit has been in each phase, all its tries together. The thread that commits
  * uses it alone.
  *
  * @param now
  *   a clock, in nanoseconds
  */
final private[interlock] class CommitTimes(now: () => Long = () => System.nanoTime()) {
  private val nanos = mutable.Map.empty[TimedPhase, Long].withDefaultValue(0L)
  private var inner = 0L

  /** Runs a part of the commit. What it runs in another phase counts for that phase alone. */
  def in[A](phase: TimedPhase)(work: => A): A = {
    val innerBefore = inner
    inner = 0
    val start = now()
    try work
    finally {
      val all = now() - start
      nanos(phase) += all - inner
      inner = innerBefore + all
    }
  }

  /** The phases in their usual order, in nanoseconds. */
  def all: Seq[(String, Long)] = TimedPhase.all.map(phase => phase.name -> nanos(phase))
}
