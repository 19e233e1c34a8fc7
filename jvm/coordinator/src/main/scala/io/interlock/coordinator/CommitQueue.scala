package io.interlock.coordinator

import java.util.concurrent.ExecutionException
import java.util.concurrent.locks.ReentrantLock

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.FileStatus

/** The commits of one table in this process, in the order of their turns.
  *
  * A transaction takes its turn, judges itself against all commits that it has not read, including
  * those that are still on their way to the store, and hands its bytes in. The turn passes on while
  * it waits for the outcome. Commits that were handed in meanwhile go to the store as one batch. So
  * the transactions of a process do not race, and each commit is judged against its predecessor.
  * Between processes the store decides, and a [[HandOver]] gives each its share.
  *
  * [[QueueState]] has the rules; this class adds the locks and the waiting of threads.
  */
final class CommitQueue private[coordinator] (
    private val log: TableLog,
    private val store: CommitStore,
    memory: CommitMemory
) {
  import CommitQueue._

  def this(log: TableLog, store: CommitStore) = this(log, store, CommitMemory.ofProcess)

  private val line = new Line
  private lazy val handOver = new HandOver(store.processLock(log))
  private val sending = new ReentrantLock(true)

  /** Held by the thread that reads what the others then know. */
  private val catchingUp = new ReentrantLock

  /** The thread that has the turn: the first in line, once it is its process's turn. */
  @volatile private var holder: Option[Thread] = None

  /** Guarded by `this`. */
  private var state = QueueState.empty[Entry]

  /** Waits until all transactions before this one have handed in their commits or given up, and
    * until it is this process's turn.
    *
    * @param meanwhile
    *   a part of the work that can be done while waiting; returns whether there was any
    * @param isHeldBack
    *   whether no transaction of the process may commit yet; asked by the first in line, again and
    *   again
    */
  def takeTurn(
      meanwhile: () => Boolean = () => false,
      isHeldBack: () => Boolean = () => false
  ): Unit = if (!hasTurn) {
    line.join()
    try {
      while (!isReady(meanwhile, isHeldBack, 0))
        line.await(if (line.isFirst) AskNanos else LookNanos)
      Line.throwIfInterrupted()
      holder = Some(Thread.currentThread())
    } catch {
      case e: Throwable =>
        leaveLine()
        throw e
    }
  }

  /** Whether the thread has its turn. It does all work that can be done before it asks for the
    * turn, so that others can have it meanwhile. Commits that others have made until now are judged
    * first.
    *
    * @param behind
    *   how many of these it has just read
    */
  @tailrec private def isReady(
      meanwhile: () => Boolean,
      isHeldBack: () => Boolean,
      behind: Int
  ): Boolean = {
    while (meanwhile()) {}
    line.isFirst && {
      // A turn is of no use to a process that is behind.
      val read = readOn()
      if (read > 0) {
        if (behind + read >= FarBehind) handOver.leaveLine()
        isReady(meanwhile, isHeldBack, behind + read)
      } else if (!hasProcessTurn(isHeldBack())) false
      else if (readOn() > 0) isReady(meanwhile, isHeldBack, 0) // the turn before has ended since
      else true
    }
  }

  private def hasProcessTurn(isHeldBack: Boolean): Boolean =
    if (isHeldBack) {
      handOver.pause()
      false
    } else {
      handOver.resume()
      if (handOver.isOver) {
        sending.lockInterruptibly()
        try sendAll()
        finally sending.unlock()
        handOver.pass()
      }
      handOver.mayCommit()
    }

  /** Reads the next commits of other processes, if processes take turns; returns how many. */
  private def readOn(): Int =
    if (!handOver.isInForce || !LogFolder.isLocal(log)) 0
    else
      synchronized(state.bodies.lastOption.map { case (last, _) => (last + 1, state.generation) })
        .fold(0) { case (next, seen) => readFrom(next, seen, FarBehind) }

  /** Reads the commits from version `from` on that other processes have made, so that a transaction
    * is judged against them before it tries to commit.
    */
  def catchUp(from: Long): Unit = {
    catchingUp.lockInterruptibly()
    try {
      val known = inMemory(from)
      if (known.commits.forall(_.isThere))
        readFrom(from + known.commits.size, known.generation, FileSystemStore.MostWinners): Unit
    } finally catchingUp.unlock()
  }

  /** Reads commits from a version on, but not those that are too large to keep; returns how many
    * there were. None is read if the log has been put back since the version before was read.
    *
    * @param seen
    *   the generation of the view that they complete
    */
  private def readFrom(version: Long, seen: Long, most: Int): Int = {
    val folder = LogFolder.of(log)
    def isFollowed = at(version - 1).filter(_.isThere).fold(Option(true))(known =>
      found(Some(folder.status(LogFolder.commitName(version - 1)).exists(SameFile(known.file, _))))
    )
    val read = Iterator.range(0, most)
      .map(n => found(folder.body(version + n).filter(_.isThere)))
      .takeWhile(_.nonEmpty).flatten.toVector
    if (read.isEmpty) 0
    else
      isFollowed match {
        case Some(true) =>
          learn(seen, read)
          line.wake(MostAhead)
          read.size
        case Some(false) =>
          startOver()
          0
        case None => 0
      }
  }

  /** What is found in the log; nothing if that fails, since the commit will meet the fault itself. */
  private def found[A](look: => Option[A]): Option[A] =
    try look
    catch { case NonFatal(failed) if !Causes.areInterrupt(failed) => None }

  /** Whether processes take turns, so that a loser does not need to pause. */
  def isTakingTurns: Boolean = handOver.isInForce

  def hasTurn: Boolean = holder.contains(Thread.currentThread())

  /** Gives the turn to the next transaction; [[submit]] does so too. */
  def passTurn(): Unit = if (hasTurn) {
    holder = None
    leaveLine()
  }

  private def leaveLine(): Unit = {
    line.leave()
    rest()
  }

  /** Gives the process's turn up if none of its transactions wants to commit. */
  private def rest(): Unit =
    if (line.isEmpty && synchronized(state.waiting.isEmpty)) handOver.pass()

  /** The known commits from version `from` on, without gaps. Commits on their way that are too
    * large to keep are waited for; afterwards they can be read from the log.
    */
  def view(from: Long): View = {
    val known = inMemory(from)
    if (known.reachesEnd || !isTaken(from + known.commits.size)) known
    else {
      isSettled(known.generation): Unit
      inMemory(from)
    }
  }

  /** The same without waiting: those that are too large to keep are missing. */
  def inMemory(from: Long): View = synchronized(state.view(from))

  /** The commits from version `from` on that are known to be in the log. */
  def settled(from: Long): Seq[CommitBody] = synchronized(state.settled(from))

  /** The commit of one version, if it is known. */
  def at(version: Long): Option[CommitBody] = synchronized(state.bodies.get(version))

  /** Whether the commit of a version that is known to be in the log is this file; None if there is
    * none. The commits after it are of the same log, unless it was put back while a commit lost
    * against them.
    */
  def knows(version: Long, file: FileStatus): Option[Boolean] =
    at(version).filter(_.isThere).map(known => SameFile(known.file, file))

  /** Whether a commit of that version is known, or this process has handed in a later one. */
  def isTaken(version: Long): Boolean = synchronized(state.isTaken(version))

  /** Forgets all commits, because the log is not as this process left it. */
  def startOver(): Unit = synchronized(answer(state.startOver))

  /** Remembers commits that were read from the log.
    *
    * @param seen
    *   the generation of the view that these commits complete
    */
  def learn(seen: Long, commits: Seq[CommitBody]): Unit =
    counting(commits) { state = state.learn(seen, commits) }

  /** Counts those of some commits that a step adds to the state. */
  private def counting(commits: Seq[CommitBody])(step: => Unit): Unit = {
    val added = synchronized {
      val before = state.bodies
      step
      commits.filterNot(commit => before.get(commit.version).exists(_.isThere))
        .filter(commit => state.bodies.get(commit.version).exists(_ eq commit))
    }
    memory.keep(this, added)
  }

  /** Forgets one commit, to make room for others. */
  private[coordinator] def drop(version: Long): Unit =
    synchronized { state = state.without(version) }

  /** Waits for all commits that were on their way at the time of the call.
    *
    * @return
    *   whether all commits in the view of generation `seen` are now in the log
    */
  def isSettled(seen: Long): Boolean = {
    sending.lock()
    try {
      sendAll()
      synchronized(state.generation == seen)
    } finally sending.unlock()
  }

  /** Runs work while no other transaction of this process has the turn, and then waits for all
    * commits that are on their way. Commits that are handed in later come after the work.
    */
  def between[A](work: => A): A = {
    takeTurn()
    val done =
      try work
      finally passTurn()
    isSettled(0): Unit
    done
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
      // From now on another thread may send it, even if this one fails.
      try {
        memory.keep(this, Seq(body))
        passTurn()
        await(entry)
      } catch { case e: Throwable => entry.answer.getOrElse(Right(Unknown(e))) }
    }
  }

  /** Commits one request by itself. It may be of any length, as it is not kept in memory. */
  def submitAlone(request: CommitRequest): CommitOutcome = {
    sending.lockInterruptibly()
    try {
      sendAll()
      val outcome = outcomes(Seq(request)).head
      synchronized(answer(state.forget))
      outcome
    } finally sending.unlock()
  }

  /** From now on the version counts as taken, by a commit that is to be read from the log. */
  private def take(version: Long): Unit = synchronized {
    answer(state.forget)
    state = state.copy(taken = state.taken.max(version))
  }

  /** Whether the tables of the other queue can commit together with this one's. */
  def commitsWith(other: CommitQueue): Boolean = store eq other.store

  /** See [[CommitStore.settle]]. */
  def settle(version: Long): Unit = store.settle(log, version)

  /** See [[CommitStore.versionsTogether]]. */
  def versionsTogether: Int = store.versionsTogether

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
    val winners = found.find(!_.isInstanceOf[Committed]).collect { case Taken(winners) => winners }
    counting(winners.getOrElse(Nil))(answer(state.settle(batch, found)))
    if (winners.nonEmpty) handOver.lost()
    line.wake(MostAhead)
  }

  private def outcomes(requests: Seq[CommitRequest]): Seq[CommitOutcome] =
    CommitQueue.outcomes(requests)(store.commit(log, requests))

  private def answer(settled: QueueState.Settled[Entry]): Unit = {
    settled.answers.foreach { case (entry, answer) => entry.answer = Some(answer) }
    state = settled.next
  }

  /** Stands for `N.json` until the file is there. */
  private def onItsWay(version: Long) =
    new FileStatus(0, false, 1, 0, System.currentTimeMillis(), log.file(version))
}

object CommitQueue {

  /** How many characters of commits the queues of this process keep. */
  def charactersKept: Long = CommitMemory.ofProcess.characters

  /** Lets the queues of this process keep at most so many characters of commits; None: the default,
    * 64 million, or a sixteenth of the heap if that is less.
    */
  def keepAtMost(characters: Option[Long]): Unit =
    CommitMemory.ofProcess.limit(characters.getOrElse(CommitMemory.default))

  /** How often the thread that is first in line asks whether its process has the turn. */
  private val AskNanos = 2.millis.toNanos

  /** How often the other waiting threads look for work. */
  private val LookNanos = 20.millis.toNanos

  /** After so many commits of others that it has just read, a process is no longer in line. */
  private val FarBehind = 16

  /** How many waiting threads are woken at once when there are new commits. */
  private val MostAhead = 4

  /** The commit was not sent, because one that it was judged against was not made. It must be
    * judged again.
    */
  case object Withdrawn

  /** Commits, including those on their way to the store.
    *
    * @param generation
    *   changes when a commit that was on its way has failed
    * @param reachesEnd
    *   whether this process has handed in the last of them, so that no later commit of another
    *   process is known
    */
  final case class View(generation: Long, commits: Seq[CommitBody], reachesEnd: Boolean)

  /** What happens to one table when several commit together.
    *
    * @param commit
    *   none if the table was only read
    * @param head
    *   the version before the commit, or up to which the reads were judged
    * @param seen
    *   the generation of the view that it was judged against
    */
  final case class Part(
      queue: CommitQueue,
      commit: Option[CommitRequest],
      tableId: String,
      head: Long,
      seen: Long
  )

  /** Makes one commit in each of several tables, or none. The thread has the turn of all of them, and
    * keeps it.
    *
    * @param parts
    *   in an order that all threads keep
    * @return
    *   as [[CommitStore.commitTogether]]; none if a commit that one of them was judged against has
    *   not been made
    */
  def submitTogether(parts: Seq[Part]): Option[Seq[CommitOutcome]] = {
    val queues = parts.map(_.queue)
    queues.foreach(_.sending.lock())
    try {
      queues.foreach(_.sendAll())
      val areCurrent = parts.forall(part =>
        part.queue.synchronized(part.queue.state.generation == part.seen)
      )
      Option.when(areCurrent) {
        val commits = parts.flatMap(_.commit)
        val found = outcomes(commits)(queues.head.store.commitTogether(parts.map(part =>
          TogetherPart(part.queue.log, part.commit, part.tableId, part.head)
        )))
        val isLost = found.exists(_.isInstanceOf[Taken])
        parts.filter(_.commit.nonEmpty || isLost).foreach(part =>
          part.queue.take(if (isLost) part.head + 1 else part.commit.get.version)
        )
        if (isLost) queues.foreach(_.handOver.lost())
        found
      }
    } finally queues.foreach(_.sending.unlock())
  }

  /** Runs on a thread of its own: an interrupt of this one must not stop a commit that others wait
    * for.
    */
  private def outcomes(requests: Seq[CommitRequest])(
      made: => Seq[CommitOutcome]
  ): Seq[CommitOutcome] =
    try
      Uninterrupted("interlock-commit") {
        try made
        catch { case NonFatal(refused) => requests.map(_ => Failed(refused)) }
      }
    catch {
      // The store failed unexpectedly: it may have made some of them.
      case broken: ExecutionException => requests.map(_ => Unknown(broken.getCause))
      // No thread could be started, so the store was not asked.
      case broken: Throwable => requests.map(_ => Failed(broken))
    }

  /** The lines are read by the thread that hands them in, so that an error in them is raised there.
    */
  final private class Entry(asked: CommitRequest) {
    val lines: Vector[String] = asked.lines.toVector
    val request: CommitRequest = asked.copy(lines = lines.iterator)
    @volatile var answer: Option[QueueState.Answer] = None
  }
}
