package io.interlock.coordinator

import java.nio.file.Files
import java.util.UUID
import java.util.concurrent.locks.LockSupport
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit}

import scala.concurrent.duration.{Duration, SECONDS}
import scala.concurrent.{Await, ExecutionContext, Future}

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

    /** Not inside an `assert`, which holds the suite's lock. */
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

  table.test("a commit judged against a view that has failed since is withdrawn") { log =>
    val own = queue(log)
    val seen = own.view(0).generation
    Files.writeString(log.file(0), """{"commitInfo":{"txnId":"foreign"}}""")
    assertEquals(own.submit(request(0), seen).map(_.getClass), Right(classOf[Taken]))
    assertEquals(own.submit(request(1), seen), Left(CommitQueue.Withdrawn))
  }

  table.test("an error of the store is every waiting commit's own, and the queue goes on") { log =>
    val own = queue(log)
    CommitPhases.observe((_, _, _) => throw new java.io.IOException("no space"))
    intercept[java.io.IOException](own.submit(request(0), own.view(0).generation))
    CommitPhases.observe(null)
    assertEquals(commitNext(own, 0), 0L)
  }
}
