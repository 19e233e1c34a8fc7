package io.interlock.coordinator

import java.util.concurrent.locks.ReentrantLock

import scala.collection.immutable.TreeMap
import scala.collection.mutable

import org.apache.hadoop.fs.FileStatus

/** The commits of one table in this process, in the order of their turns.
  *
  * A transaction takes its turn, judges itself against all commits it has missed, those that are
  * still on their way included, and hands its bytes in; the turn passes on while it waits for the
  * outcome. What has been handed in meanwhile goes to the store as one batch. So within a process
  * nobody races, and each commit is judged against its predecessor; between processes the store
  * decides.
  */
final class CommitQueue(log: TableLog, store: CommitStore) {
  import CommitQueue._

  private val turn = new ReentrantLock(true)
  private val sending = new ReentrantLock(true)

  // All below is guarded by `this`.
  private val waiting = mutable.Queue.empty[Entry]
  private var tail = -1L
  private var generation = 0L
  private var bodies = TreeMap.empty[Long, CommitBody]
  private var heldBytes = 0L

  /** Waits until all transactions before have handed in their commits, or given up. */
  def takeTurn(): Unit = if (!turn.isHeldByCurrentThread) turn.lockInterruptibly()

  /** Lets the next one have its turn; [[submit]] does it too. */
  def passTurn(): Unit = if (turn.isHeldByCurrentThread) turn.unlock()

  /** What is known of the commits from version `from` on, without gaps. */
  def view(from: Long): View = synchronized {
    val known = Iterator.iterate(from)(_ + 1).map(bodies.get).takeWhile(_.nonEmpty).flatten.toVector
    View(generation, known, reachesEnd = known.nonEmpty && known.last.version == tail)
  }

  /** The commit of one version, if it is known. */
  def at(version: Long): Option[CommitBody] = synchronized(bodies.get(version))

  /** Whether this process has handed in a commit of that version, or of a later one. */
  def isTaken(version: Long): Boolean = synchronized(version <= tail)

  /** Forgets all commits: the log turned out to be another than this process left. */
  def startOver(): Unit = synchronized(forget())

  /** Remembers commits that were read from the log. */
  def learn(commits: Seq[CommitBody]): Unit = synchronized(commits.foreach(remember))

  /** Hands a commit in, passes the turn on and waits for the outcome.
    *
    * @param seen
    *   the generation of the view that the commit was judged against
    */
  def submit(request: CommitRequest, seen: Long): Either[Withdrawn.type, CommitOutcome] = {
    val handedIn = synchronized {
      if (seen != generation) Some(Left(Withdrawn))
      else if (isTaken(request.version)) Some(Right(Taken(Nil)))
      else None
    }
    handedIn.getOrElse {
      // The lines are read by whoever sends the batch: keep them for those who judge meanwhile.
      val lines = request.lines.toVector
      val entry = new Entry(request.copy(lines = lines.iterator))
      synchronized {
        waiting.enqueue(entry)
        tail = request.version
        remember(CommitBody(request.version, onItsWay(request.version), lines))
      }
      passTurn()
      await(entry)
    }
  }

  /** Commits one request by itself, of any length: nothing of it is kept. */
  def submitAlone(request: CommitRequest): CommitOutcome = {
    sending.lockInterruptibly()
    try {
      while (synchronized(waiting.nonEmpty)) send()
      val outcome = store.commit(log, Seq(request)).head
      synchronized(forget())
      outcome
    } finally sending.unlock()
  }

  private def await(entry: Entry): Either[Withdrawn.type, CommitOutcome] = {
    sending.lock()
    try while (entry.result.isEmpty) send()
    finally sending.unlock()
    entry.result.get.fold(error => throw error, identity)
  }

  /** Sends what waits, up to the first gap, as one batch. */
  private def send(): Unit = {
    val batch = synchronized {
      val first = waiting.head.request.version
      val run = waiting.zipWithIndex.takeWhile { case (entry, i) =>
        entry.request.version == first + i
      }.map(_._1).toVector
      waiting.remove(0, run.size)
      run
    }
    try {
      val outcomes = store.commit(log, batch.map(_.request))
      synchronized {
        val failed = outcomes.indexWhere(!_.isInstanceOf[Committed])
        batch.zip(outcomes).zipWithIndex.foreach { case ((entry, outcome), i) =>
          entry.result = Some(Right(outcome match {
            case Committed(version, file) =>
              bodies.get(version).foreach(body => remember(body.copy(file = file)))
              Right(outcome)
            case Taken(_) if i > failed => Left(Withdrawn)
            case _ => Right(outcome)
          }))
        }
        if (failed >= 0) {
          forget()
          outcomes(failed) match {
            case Taken(winners) => winners.foreach(remember)
            case _ =>
          }
        }
      }
    } catch {
      case error: Throwable =>
        synchronized {
          batch.foreach(_.result = Some(Left(error)))
          forget()
        }
    }
  }

  /** What waits was judged against a commit that is not there: it is judged again. */
  private def forget(): Unit = {
    waiting.foreach(_.result = Some(Right(Left(Withdrawn))))
    waiting.clear()
    bodies = TreeMap.empty
    heldBytes = 0
    tail = -1
    generation += 1
  }

  private def remember(body: CommitBody): Unit = {
    heldBytes += sizeOf(body) - bodies.get(body.version).fold(0L)(sizeOf)
    bodies += body.version -> body
    while (heldBytes > MostBytes && bodies.size > 1) {
      heldBytes -= sizeOf(bodies.head._2)
      bodies -= bodies.head._1
    }
  }

  private def sizeOf(body: CommitBody): Long = body.lines.iterator.map(_.length.toLong).sum

  /** Stands for `N.json` until it is there. */
  private def onItsWay(version: Long) =
    new FileStatus(0, false, 1, 0, System.currentTimeMillis(), log.file(version))
}

object CommitQueue {

  /** The most characters of commits that a queue keeps. */
  private val MostBytes = 16L << 20

  /** Not sent: the commit before it, which it was judged against, was not made. It starts again. */
  case object Withdrawn

  /** Commits, those on their way included.
    *
    * @param generation
    *   tells whether one that was on its way has failed since
    * @param reachesEnd
    *   whether this process has handed in the last of them, so that nobody is known to be ahead
    */
  final case class View(generation: Long, commits: Seq[CommitBody], reachesEnd: Boolean)

  final private class Entry(val request: CommitRequest) {
    @volatile var result: Option[Either[Throwable, Either[Withdrawn.type, CommitOutcome]]] = None
  }
}
