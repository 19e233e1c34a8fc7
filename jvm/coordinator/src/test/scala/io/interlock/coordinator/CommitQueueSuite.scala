package io.interlock.coordinator

import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.locks.LockSupport
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit, TimeoutException}

import scala.concurrent.duration.{Duration, MILLISECONDS, SECONDS}
import scala.concurrent.{Await, ExecutionContext, Future}

import org.apache.hadoop.fs.FileStatus

/** The queue over the file system store, on a real folder. */
class CommitQueueSuite extends Tables {
  private val threads = Executors.newCachedThreadPool()
  implicit private val executor: ExecutionContext = ExecutionContext.fromExecutor(threads)

  override def afterEach(context: AfterEach): Unit = CommitPhases.observe(null)

  override def afterAll(): Unit = threads.shutdown()

  private def queue(table: TestTable) = new CommitQueue(table.log, table.store)

  private def request(version: Long): CommitRequest = {
    val txnId = UUID.randomUUID().toString
    CommitRequest(version, txnId, "table", "table", Iterator(TestTable.info(txnId), "{}"))
  }

  /** Stops the first commit that reaches `phase` until `release` is called. */
  final private class Gate(phase: CommitPhase) extends CommitPhaseObserver {
    private val arrived = new CountDownLatch(1)
    private val opened = new CountDownLatch(1)

    override def at(reached: CommitPhase, log: String, version: Long): Unit =
      if (reached == phase && arrived.getCount > 0) {
        arrived.countDown()
        within20Seconds(opened)
      }
    def awaitArrival(): Unit = within20Seconds(arrived)

    /** Waits outside of `assert`, which holds the suite's lock. */
    private def within20Seconds(latch: CountDownLatch): Unit = {
      val isOpen = latch.await(20, TimeUnit.SECONDS)
      assert(isOpen)
    }

    def release(): Unit = opened.countDown()
  }

  /** The queue's view once `count` commits are in it. */
  private def viewOf(queue: CommitQueue, count: Int): CommitQueue.View =
    Iterator.continually {
      LockSupport.parkNanos(1000000)
      queue.view(0)
    }.take(20000).find(_.commits.size == count).getOrElse(fail("Nothing more was handed in"))

  private def committed(outcome: Future[Any]) = Await.result(outcome, Duration(20, SECONDS))

  /** Hands a commit in behind all others, as a transaction does. */
  private def commitNext(queue: CommitQueue, from: Long): Long = {
    queue.takeTurn()
    try {
      val view = queue.view(from)
      val version = from + view.commits.size
      queue.submit(request(version), view.generation) match {
        case Right(Committed(at, _)) => at
        case other => fail(s"$other at $version")
      }
    } finally queue.passTurn()
  }

  table.test("many threads of one process never race: every version once, without a refusal") {
    log =>
      val own = queue(log)
      commitNext(own, 0)
      val versions = Await.result(
        Future.sequence((1 to 60).map(_ => Future(commitNext(own, 1)))),
        Duration(60, SECONDS)
      )
      assertEquals(versions.sorted, (1L to 60L).toVector)
      assertEquals(log.names, (0L to 60L).map(LogFolder.commitName).toSet)
  }

  table.test("who is held back waits, first in line, and its process keeps the turn") { log =>
    val own = queue(log)
    val other = new FileProcessLock(log.log)
    // Another process has version 0, so that processes take turns.
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    own.takeTurn()
    assert(own.submit(request(0), own.view(0).generation).exists(_.isInstanceOf[Taken]))
    own.takeTurn()
    assert(other.ask().isInstanceOf[ProcessLock.Theirs])
    val isInLine = new CountDownLatch(1)
    val answers = Iterator(
      () => true,
      () => {
        assert(other.ask().isInstanceOf[ProcessLock.Theirs])
        false
      }
    )
    val heldBack = Future {
      own.takeTurn(() => { isInLine.countDown(); false }, () => answers.next()())
      own.passTurn()
    }
    isInLine.await()
    own.passTurn()
    committed(heldBack): Unit
    assert(answers.isEmpty)
  }

  table.test("what is handed in while the store works goes to it as one batch, and is in view") {
    log =>
      val own = queue(log)
      val gate = new Gate(CommitPhase.Staging)
      CommitPhases.observe(gate)
      val first = Future(commitNext(own, 0))
      gate.awaitArrival()
      val second = Future(commitNext(own, 0))
      val view = viewOf(own, 2)
      assert(view.reachesEnd)
      assert(!Files.exists(log.file(0)))
      gate.release()
      assertEquals(committed(first), 0L)
      assertEquals(committed(second), 1L)
      assertEquals(own.view(0).commits.map(_.file.getLen > 0), Seq(true, true))
  }

  table.test("a commit judged against one that was not made is withdrawn, not sent") { log =>
    val own = queue(log)
    val gate = new Gate(CommitPhase.Staged)
    CommitPhases.observe(gate)
    val first = Future(own.submit(request(0), own.view(0).generation))
    gate.awaitArrival()
    val second = Future(own.submit(request(1), own.view(0).generation))
    viewOf(own, 2)
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    gate.release()
    committed(first) match {
      case Right(Taken(winners)) =>
        assertEquals(winners.flatMap(_.lines), Seq("""{"commitInfo":{"txnId":"foreign"}}"""))
      case other => fail(other.toString)
    }
    assertEquals(committed(second), Left(CommitQueue.Withdrawn))
    assert(!Files.exists(log.file(1)))
  }

  table.test("who has lost a version takes turns with other processes") { log =>
    val own = queue(log)
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    own.takeTurn()
    assert(!own.isTakingTurns)
    val lost = own.submit(request(0), own.view(0).generation)
    assertEquals(lost.map(_.getClass), Right(classOf[Taken]))
    own.takeTurn()
    assert(own.isTakingTurns)
    own.passTurn()
  }

  table.test("a process that is behind reads on before it asks for the turn") { log =>
    var known = Seq.empty[Int]
    lazy val own: CommitQueue = new CommitQueue(log.log, store(lock)(log.store.commit(log.log, _)))
    lazy val lock = new ProcessLock {
      override def ask(): ProcessLock.Answer = {
        known :+= own.view(0).commits.size
        if (known.size == 1) ProcessLock.Theirs(1) else ProcessLock.Mine
      }
      override def release(): Unit = ()
      override def isWanted: Boolean = false
    }
    def foreign(version: Int) =
      Files.writeString(log.file(version.toLong), """{"commitInfo":{"txnId":"foreign"}}"""): Unit
    foreign(0)
    own.takeTurn()
    assert(own.submit(request(0), own.view(0).generation).exists(_.isInstanceOf[Taken]))
    val more = Iterator { () =>
      (1 to 20).foreach(foreign)
      Files.createFile(log.file(21)): Unit // as a power failure leaves it
    }
    own.takeTurn(() => {
      if (known.nonEmpty) more.nextOption().foreach(_.apply())
      false
    })
    assertEquals(known, Seq(1, 21))
    own.passTurn()
  }

  table.test("what cannot be read ahead is left to the commit") { log =>
    val own = queue(log)
    (0L to 2L).foreach(version =>
      Files.writeString(log.file(version), """{"commitInfo":{"txnId":"foreign"}}""")
    )
    Files.createDirectory(log.file(3))
    own.catchUp(0)
    assertEquals(own.view(0).commits.map(_.version), Seq(0L, 1L, 2L))
  }

  table.test("a commit judged against a view that has failed since is withdrawn") { log =>
    val own = queue(log)
    val seen = own.view(0).generation
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    assertEquals(own.submit(request(0), seen).map(_.getClass), Right(classOf[Taken]))
    assertEquals(own.submit(request(1), seen), Left(CommitQueue.Withdrawn))
  }

  /** Hands commits of the versions 1, 2 and 3 in while version 0 is on its way, so that they go as one
    * batch.
    */
  private def asBatch(own: CommitQueue, faultAt: Option[Long])(
      check: Seq[Future[Either[CommitQueue.Withdrawn.type, CommitOutcome]]] => Unit
  ): Unit = {
    val gate = new Gate(CommitPhase.Staging)
    CommitPhases.observe { (phase, log, version) =>
      gate.at(phase, log, version)
      if (phase == CommitPhase.Staged && faultAt.contains(version)) throw NoSpace
    }
    val first = Future(own.submit(request(0), own.view(0).generation))
    gate.awaitArrival()
    val behind = (1L to 3L).map { version =>
      val seen = own.view(0).generation
      val submitted = Future(own.submit(request(version), seen))
      viewOf(own, version.toInt + 1)
      submitted
    }
    gate.release()
    assertCommitted(outcome(first).toOption.get, 0)
    check(behind)
  }

  private object NoSpace extends java.io.IOException("no space")

  private def outcome(submitted: Future[Either[CommitQueue.Withdrawn.type, CommitOutcome]]) =
    Await.result(submitted, Duration(20, SECONDS))

  for (bad <- 1L to 3L)
    table.test(s"of a batch of three, an error of version $bad is that commit's alone") { log =>
      val own = queue(log)
      asBatch(own, Some(bad)) { submitted =>
        submitted.map(outcome).zip(1L to 3L).foreach {
          case (Right(made), version) if version < bad => assertCommitted(made, version)
          case (answer, `bad`) => assertEquals(answer, Right(Failed(NoSpace)))
          case (answer, _) => assertEquals(answer, Left(CommitQueue.Withdrawn))
        }
        CommitPhases.observe(null)
        assertEquals(log.names, (0L until bad).map(LogFolder.commitName).toSet)
        assertEquals(commitNext(own, bad), bad)
      }
    }

  table.test("of a batch of three without an error, each is committed") { log =>
    asBatch(queue(log), None) { submitted =>
      submitted.map(outcome).zip(1L to 3L).foreach { case (answer, version) =>
        assertCommitted(answer.toOption.get, version)
      }
    }
  }

  table.test("lines that cannot be had are an error of the commit that has them") { log =>
    val own = queue(log)
    val broken = request(0).copy(lines = Iterator("{}").map(_ => sys.error("lines")))
    intercept[RuntimeException](own.submit(broken, own.view(0).generation))
    assertEquals(commitNext(own, 0), 0L)
  }

  table.test("a commit that was there already ends the batch, and nothing is judged against it") {
    log =>
      val own = queue(log)
      val seen = own.view(0).generation
      assertCommitted(log.commit(0, "replayed"), 0)
      val again = own.submit(log.request(1, "replayed"), seen)
      assertCommitted(again.toOption.get, 0)
      assertEquals(own.view(1).commits, Nil)
      assertEquals(own.submit(request(2), seen), Left(CommitQueue.Withdrawn))
      assertEquals(commitNext(own, 1), 1L)
  }

  table.test("an interrupt of the thread that sends ends nobody's commit") { log =>
    val own = queue(log)
    val gate = new Gate(CommitPhase.Staged)
    CommitPhases.observe(gate)
    val answers = new java.util.concurrent.LinkedBlockingQueue[(Any, Boolean)]
    val sender = new Thread(() =>
      answers.put((own.submit(request(0), own.view(0).generation), Thread.interrupted()))
    )
    sender.start()
    gate.awaitArrival()
    val second = Future(own.submit(request(1), own.view(0).generation))
    viewOf(own, 2)
    sender.interrupt()
    gate.release()
    answers.poll(20, TimeUnit.SECONDS) match {
      case (Right(outcome: CommitOutcome), interrupted) =>
        assertCommitted(outcome, 0)
        assert(interrupted)
      case other => fail(s"$other")
    }
    assertCommitted(outcome(second).toOption.get, 1)
    assertLog(log, log.txnId(0), log.txnId(1))
  }

  private def store(lock: ProcessLock)(
      made: Seq[CommitRequest] => Seq[CommitOutcome]
  ): CommitStore = new CommitStore {
    override def commit(of: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome] =
      made(requests)
    override def processLock(of: TableLog): ProcessLock = lock
    override def close(): Unit = ()
  }

  table.test("a store that refuses a commit has made nothing") { log =>
    val own = new CommitQueue(log.log, store(ProcessLock.None)(_ => throw NoSpace))
    val answer = own.submit(request(0), own.view(0).generation)
    assertEquals(answer, Right(Failed(NoSpace)))
  }

  table.test("a store that breaks may have made the commit: its outcome is unknown") { log =>
    val broken = new LinkageError("broken")
    val own = new CommitQueue(log.log, store(ProcessLock.None)(_ => throw broken))
    val answer = own.submit(request(0), own.view(0).generation)
    assertEquals(answer, Right(Unknown(broken)))
  }

  table.test("a version whose commit is too large to be kept is taken, unless all begins anew") {
    log =>
      val own = queue(log)
      Files.writeString(log.file(0), TestTable.info("foreign") + "\n" + "x" * (1 << 20))
      val answer = own.submit(request(0), own.view(0).generation)
      assertEquals(answer, Right(Taken(Nil)))
      assertEquals(own.view(0).commits, Nil)
      assert(own.isTaken(0) && !own.isTaken(1))
      own.startOver()
      assert(!own.isTaken(0))
  }

  table.test("a lock that fails behind a commit does not say that it was not made") { log =>
    val lock = new ProcessLock {
      override def ask(): ProcessLock.Answer = ProcessLock.Mine
      override def release(): Unit = throw new IllegalStateException("no lock")
      override def isWanted: Boolean = false
    }
    val own = new CommitQueue(log.log, store(lock)(log.store.commit(log.log, _)))
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    own.takeTurn()
    assert(own.submit(request(0), own.view(0).generation).exists(_.isInstanceOf[Taken]))
    own.takeTurn() // the lock's: another process is there
    val outcome = own.submit(request(1), own.view(1).generation)
    assertEquals(outcome.map(_.isInstanceOf[Committed]), Right(true))
    assert(Files.exists(log.file(1)))
  }

  table.test("what was judged against a commit on its way is settled once that was made, or not") {
    log =>
      val own = queue(log)
      val gate = new Gate(CommitPhase.Staged)
      CommitPhases.observe(gate)
      val first = Future(own.submit(request(0), own.view(0).generation))
      gate.awaitArrival()
      val seen = viewOf(own, 1).generation
      val isSettled = Future(own.isSettled(seen))
      Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
      gate.release()
      assertEquals(outcome(first).map(_.getClass), Right(classOf[Taken]))
      assertEquals(committed(isSettled), false)
      assert(own.isSettled(own.view(0).generation))
  }

  table.test("what was read of a log that turned out to be another is not remembered") { log =>
    val own = queue(log)
    assertEquals(commitNext(own, 0), 0L)
    val read = own.view(0)
    own.startOver()
    own.learn(read.generation, read.commits)
    assertEquals(own.view(0).commits, Nil)
    own.learn(own.view(0).generation, read.commits)
    assertEquals(own.view(0).commits, read.commits)
  }

  table.test("the queues of a process keep so much together, the newest") { log =>
    val memory = new CommitMemory(500)
    val (one, two) = (
      new CommitQueue(log.log, log.store, memory),
      new CommitQueue(log.log, log.newStore, memory)
    )
    def body(version: Long, length: Int) =
      CommitBody(
        version,
        new FileStatus(1, false, 1, 0, 0, log.log.file(version)),
        Seq("x" * length)
      )
    def kept(queue: CommitQueue) = (0L to 9L).filter(queue.at(_).nonEmpty)
    one.learn(0, (0L to 3L).map(body(_, 100)))
    for (_ <- 1 to 2) two.learn(0, Seq(body(4, 200))) // counts once
    assertEquals((kept(one), kept(two)), (Vector(1L, 2L, 3L), Vector(4L)))
    two.learn(0, Seq(body(5, 501))) // too large for any of the others to make way for it
    assertEquals((kept(one), kept(two)), (Vector(1L, 2L, 3L), Vector(4L)))
    two.learn(0, Seq(body(6, 500)))
    assertEquals((kept(one), kept(two)), (Vector.empty[Long], Vector(6L)))
    memory.limit(700)
    one.learn(0, (0L to 3L).map(body(_, 100)))
    assertEquals((kept(one), kept(two)), (Vector(0L, 1L, 2L, 3L), Vector.empty[Long]))
    memory.limit(200)
    assertEquals(kept(one), Vector(2L, 3L))
  }

  table.test("the winner of a lost race counts in memory") { log =>
    log.commit(0, "winner", "x" * 1000)
    val memory = new CommitMemory(10000)
    val own = new CommitQueue(log.log, log.newStore, memory)
    own.submit(request(0), own.view(0).generation) match {
      case Right(Taken(Seq(winner))) =>
        assert(memory.characters >= winner.lines.map(_.length).sum, memory.characters)
      case other => fail(s"$other")
    }
  }

  table.test("a commit on its way that is too large to be kept is waited for") { log =>
    val own = new CommitQueue(log.log, log.store, new CommitMemory(1))
    val gate = new Gate(CommitPhase.Staged)
    CommitPhases.observe(gate)
    val first = Future(own.submit(request(0), own.view(0).generation))
    gate.awaitArrival()
    val view = Future(own.view(0))
    intercept[TimeoutException](Await.ready(view, Duration(100, MILLISECONDS)))
    gate.release()
    assertCommitted(outcome(first).toOption.get, 0)
    val seen = Await.result(view, Duration(20, SECONDS))
    assertEquals((seen.commits, seen.reachesEnd), (Nil, false))
    assert(Files.exists(log.file(0)))
  }

  table.test("a commit that gets no thread fails, and those behind it go on") { log =>
    val own = queue(log)
    val fails = new AtomicBoolean(true)
    val inherited = new InheritableThreadLocal[String] {
      override def childValue(parents: String): String =
        if (fails.getAndSet(false)) throw new OutOfMemoryError("no thread can be made") else parents
    }
    inherited.set("asked for whenever a thread is made")
    try {
      own.takeTurn()
      own.submit(request(0), own.view(0).generation) match {
        case Right(Failed(_: OutOfMemoryError)) =>
        case other => fail(s"$other")
      }
      assertEquals(commitNext(own, 0), 0L)
    } finally inherited.remove()
  }
}
