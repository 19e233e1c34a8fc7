package io.interlock.coordinator

import java.util.concurrent.ExecutionException
import java.util.concurrent.locks.ReentrantLock

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileStatus

/** The commits of one table in this process, in the order of their turns.
  *
  * A transaction takes its turn, judges itself against all commits it has missed, those that are
  * still on their way included, and hands its bytes in; the turn passes on while it waits for the
  * outcome. What has been handed in meanwhile goes to the store as one batch. So within a process
  * nobody races, and each commit is judged against its predecessor; between processes the store
  * decides, and a [[HandOver]] sees to it that each gets its share.
  *
  * [[QueueState]] has the rules; here are the locks, and the threads that wait.
  */
final class CommitQueue private[coordinator] (
    log: TableLog,
    store: CommitStore,
    memory: CommitMemory
) {
  import CommitQueue._

  def this(log: TableLog, store: CommitStore) = this(log, store, CommitMemory.ofProcess)

  private val line = new Line
  private lazy val handOver = new HandOver(store.processLock(log))
  private val sending = new ReentrantLock(true)

  /** Who has the turn: the first in line, once the process has it. */
  @volatile private var holder: Option[Thread] = None

  /** Guarded by `this`. */
  private var state = QueueState.empty[Entry]

  /** Waits until all transactions before have handed in their commits, or given up, and other
    * processes have let this one commit.
    *
    * @param meanwhile
    *   what there is to do until then, some of it at a time: says whether there was anything
    */
  def takeTurn(meanwhile: () => Boolean = () => false): Unit = if (!hasTurn) {
    line.join()
    try {
      while (!isReady(meanwhile)) line.await(if (line.isFirst) AskNanos else LookNanos)
      Line.throwIfInterrupted()
      holder = Some(Thread.currentThread())
    } catch {
      case e: Throwable =>
        leaveLine()
        throw e
    }
  }

  /** Whether the thread has its turn. Who has much to do asks for nothing until it is done: others
    * could have the turn. And what others have committed until now is to be judged first.
    */
  @tailrec private def isReady(meanwhile: () => Boolean): Boolean = {
    while (meanwhile()) {}
    line.isFirst && {
      val mayCommit = hasProcessTurn
      if (handOver.isInForce && readOn()) isReady(meanwhile) else mayCommit
    }
  }

  private def hasProcessTurn: Boolean = {
    if (handOver.isOver) {
      sending.lockInterruptibly()
      try sendAll()
      finally sending.unlock()
      handOver.pass()
    }
    handOver.mayCommit()
  }

  /** Looks for the next commit of another process, and says whether there is one. */
  private def readOn(): Boolean = LogFolder.isLocal(log) && {
    val known = synchronized(state.bodies.lastOption.map { case (last, _) =>
      (state.generation, last)
    })
    val found = known.flatMap { case (seen, last) =>
      Try(LogFolder.of(log).body(last + 1)).toOption.flatten.map(seen -> _)
    }
    found.foreach { case (seen, body) =>
      learn(seen, Seq(body))
      line.wake(MostAhead)
    }
    found.nonEmpty
  }

  /** Whether processes wait for each other, so that nobody needs to stand back. */
  def isTakingTurns: Boolean = handOver.isInForce

  def hasTurn: Boolean = holder.contains(Thread.currentThread())

  /** Lets the next one have its turn; [[submit]] does it too. */
  def passTurn(): Unit = if (hasTurn) {
    holder = None
    leaveLine()
  }

  private def leaveLine(): Unit = {
    line.leave()
    rest()
  }

  /** A process in which nobody wants to commit does not keep the turn. */
  private def rest(): Unit =
    if (line.isEmpty && synchronized(state.waiting.isEmpty)) handOver.pass()

  /** What is known of the commits from version `from` on, without gaps. Waits for those on their way
    * that are not kept: afterwards the log has them.
    */
  def view(from: Long): View = {
    def now = synchronized(state.view(from))
    val known = now
    if (known.reachesEnd || !isTaken(from + known.commits.size)) known
    else {
      isSettled(known.generation): Unit
      now
    }
  }

  /** The commits from version `from` on that are known to be in the log. */
  def settled(from: Long): Seq[CommitBody] = synchronized(state.settled(from))

  /** The commit of one version, if it is known. */
  def at(version: Long): Option[CommitBody] = synchronized(state.bodies.get(version))

  /** Whether a commit of that version is known, or this process has handed in a later one. */
  def isTaken(version: Long): Boolean = synchronized(state.isTaken(version))

  /** Forgets all commits: the log turned out to be another than this process left. */
  def startOver(): Unit = synchronized(answer(state.startOver))

  /** Remembers commits that were read from the log.
    *
    * @param seen
    *   the generation of the view that they complete
    */
  def learn(seen: Long, commits: Seq[CommitBody]): Unit = {
    synchronized { state = state.learn(seen, commits) }
    memory.keep(this, commits)
  }

  /** Forgets one commit, to keep others. */
  private[coordinator] def drop(version: Long): Unit =
    synchronized { state = state.without(version) }

  /** Waits until no commit is on its way that was when it was called.
    *
    * @return
    *   whether what was judged against the view of generation `seen` was judged against the log
    */
  def isSettled(seen: Long): Boolean = {
    sending.lock()
    try {
      sendAll()
      synchronized(state.generation == seen)
    } finally sending.unlock()
  }

  /** Hands a commit in, passes the turn on and waits for the outcome.
    *
    * @param seen
    *   the generation of the view that the commit was judged against
    */
  def submit(request: CommitRequest, seen: Long): Either[Withdrawn.type, CommitOutcome] = {
    val entry = new Entry(request)
    val body = CommitBody(request.version, onItsWay(request.version), entry.lines)
    val answered = synchronized {
      val handedIn = state.handIn(entry, body, seen)
      handedIn.foreach(state = _)
      handedIn.left.toOption
    }
    answered.getOrElse {
      // It may be sent by others from now on, whatever fails here.
      try {
        memory.keep(this, Seq(body))
        passTurn()
        await(entry)
      } catch { case e: Throwable => entry.answer.getOrElse(Right(Unknown(e))) }
    }
  }

  /** Commits one request by itself, of any length: nothing of it is kept. */
  def submitAlone(request: CommitRequest): CommitOutcome = {
    sending.lockInterruptibly()
    try {
      sendAll()
      val outcome = outcomes(Seq(request)).head
      synchronized(answer(state.forget))
      outcome
    } finally sending.unlock()
  }

  private def await(entry: Entry): Either[Withdrawn.type, CommitOutcome] = {
    sending.lock()
    try while (entry.answer.isEmpty) send()
    finally sending.unlock()
    rest()
    entry.answer.get
  }

  private def sendAll(): Unit = while (synchronized(state.waiting.nonEmpty)) send()

  private def send(): Unit = {
    val batch = synchronized {
      val (next, rest) = state.nextBatch
      state = rest
      next
    }
    val found = outcomes(batch.map(_.entry.request))
    synchronized(answer(state.settle(batch, found)))
    found.find(!_.isInstanceOf[Committed]).foreach {
      case Taken(winners) =>
        handOver.lost()
        memory.keep(this, winners)
      case _ =>
    }
    line.wake(MostAhead)
  }

  /** A thread that is interrupted must not stop half-way what others wait for. */
  private def outcomes(requests: Seq[CommitRequest]): Seq[CommitOutcome] =
    try
      Uninterrupted("interlock-commit") {
        try store.commit(log, requests)
        catch { case NonFatal(refused) => requests.map(_ => Failed(refused)) }
      }
    catch {
      // The store broke: it may have made some of them.
      case broken: ExecutionException => requests.map(_ => Unknown(broken.getCause))
      // There was no thread for it: the store was not asked.
      case broken: Throwable => requests.map(_ => Failed(broken))
    }

  private def answer(settled: QueueState.Settled[Entry]): Unit = {
    settled.answers.foreach { case (entry, answer) => entry.answer = Some(answer) }
    state = settled.next
  }

  /** Stands for `N.json` until it is there. */
  private def onItsWay(version: Long) =
    new FileStatus(0, false, 1, 0, System.currentTimeMillis(), log.file(version))
}

object CommitQueue {

  /** How often who is first in line asks whether the process has its turn. */
  private val AskNanos = 2.millis.toNanos

  /** How often the others look what there is to do. */
  private val LookNanos = 20.millis.toNanos

  /** How many of those who wait are told at once that there are new commits. */
  private val MostAhead = 4

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

  /** The lines are read here, by the thread that hands them in: what they throw is its own. */
  final private class Entry(asked: CommitRequest) {
    val lines: Vector[String] = asked.lines.toVector
    val request: CommitRequest = asked.copy(lines = lines.iterator)
    @volatile var answer: Option[QueueState.Answer] = None
  }
}
