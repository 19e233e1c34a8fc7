package io.interlock.coordinator

import java.nio.file.Files
import java.util.concurrent.locks.LockSupport
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Random, Try}

class FileBlockSuite extends Tables {
  private val two = FunFixture.map2(table, table)
  private val three = FunFixture.map3(table, table, table)

  override val munitTimeout: Duration = 1.hour // of many rounds

  override def afterEach(context: AfterEach): Unit = CommitPhases.observe(null)

  private def newStore(table: TestTable, patience: FiniteDuration = 50.millis): FileSystemStore =
    new FileSystemStore(_ => table.logStore, patience)

  private def exclusive(table: TestTable, version: Long, txnId: String) =
    table.request(version, txnId).copy(isExclusive = true)

  /** Commits the block `id` to tables whose last version is `head`. */
  private def block(store: CommitStore, id: String, heads: (TestTable, Long)*): Seq[CommitOutcome] =
    store.commitTogether(heads.map { case (table, head) =>
      TogetherPart(table.log, Some(exclusive(table, head + 2, id)), "table", head)
    })

  private def lastVersion(table: TestTable): Long =
    Iterator.from(0).map(_.toLong).takeWhile(v => Files.exists(table.file(v))).size - 1L

  private def txns(table: TestTable): Seq[String] =
    (0L to lastVersion(table)).map(table.txnId).filterNot(Prepared.isOf)

  private def blocks(table: TestTable): Set[String] = {
    val folder = table.folder.resolve("_interlock/blocks")
    if (!Files.isDirectory(folder)) Set.empty
    else Files.list(folder).iterator.asScala.map(_.getFileName.toString).toSet
  }

  for (
    (storage, two) <-
      Seq("local disk" -> two, "LogStore" -> FunFixture.map2(remoteTable, remoteTable))
  )
    two.test(
      s"$storage: each table gets a version that reserves the next one, and nothing else stays"
    ) {
      case (a, b) =>
        Seq(a, b).foreach(_.commit(0, "first"))
        assertCommitted(block(newStore(a), "block", a -> 0, b -> 0).head, 2)
        for (table <- Seq(a, b)) {
          assertEquals(lastVersion(table), 2L)
          assert(Prepared.isOf(table.txnId(1)))
          assertEquals(txns(table), Seq("first", "block"))
          assertEquals(table.names.filter(_.startsWith(".")), Set.empty[String])
        }
        assertEquals(blocks(a) ++ blocks(b), Set.empty[String])
        assertCommitted(newStore(a).commit(b.log, Seq(exclusive(b, 3, "next"))).head, 3)
    }

  two.test("a table that another writer has changed leaves the others as they are") {
    case (a, b) =>
      Seq(a, b).foreach(_.commit(0, "first"))
      b.commit(1, "other")
      assertEquals(block(newStore(a), "block", a -> 0, b -> 0), Seq(Taken(Nil), Taken(Nil)))
      assertEquals(txns(a), Seq("first"))
      assertEquals(txns(b), Seq("first", "other"))
      // The same transaction again, behind what it has left.
      block(newStore(a), "block", a -> 1, b -> 1).foreach(assertCommitted(_, 3))
      assertEquals(txns(a), Seq("first", "block"))
  }

  two.test("what was only read must not have moved on") { case (read, changed) =>
    Seq(read, changed).foreach(_.commit(0, "first"))
    def parts(head: Long) = Seq(
      TogetherPart(read.log, None, "table", 0),
      TogetherPart(changed.log, Some(exclusive(changed, head + 2, "block")), "table", head)
    )
    read.commit(1, "other")
    assertEquals(newStore(read).commitTogether(parts(0)), Seq(Taken(Nil)))
    assertEquals(txns(changed), Seq("first"))
  }

  two.test("a failure before the decision leaves nothing, and nobody waits for it") {
    case (a, b) =>
      Seq(a, b).foreach(_.commit(0, "first"))
      for (phase <- Seq(CommitPhase.Staged, CommitPhase.Publishing, CommitPhase.Ratifying)) {
        val heads = Seq(a, b).map(table => table -> lastVersion(table))
        CommitPhases.observe((at, log, _) =>
          if (at == phase && (phase == CommitPhase.Ratifying || log == b.log.path.toString))
            throw new java.io.IOException("full")
        )
        val outcomes = Try(block(newStore(a, 1.hour), "block", heads: _*))
        outcomes.toOption.toSeq.flatten.foreach {
          case Failed(_) =>
          case other => fail(s"$phase: $other")
        }
        CommitPhases.observe(null)
        for (table <- Seq(a, b)) {
          assertEquals(table.names.filter(_.startsWith(".")), Set.empty[String])
          val next = exclusive(table, lastVersion(table) + 1, s"behind $phase")
          assertCommitted(newStore(a, 1.hour).commit(table.log, Seq(next)).head, next.version)
        }
      }
  }

  two.test("a block that a waiting writer has aborted before its decision is nowhere") {
    case (a, b) =>
      Seq(a, b).foreach(_.commit(0, "first"))
      val isFirst = new java.util.concurrent.atomic.AtomicBoolean(true)
      CommitPhases.observe((phase, _, _) =>
        if (phase == CommitPhase.Ratifying && isFirst.getAndSet(false))
          assertCommitted(newStore(b).commit(b.log, Seq(exclusive(b, 2, "next"))).head, 2)
      )
      assertEquals(
        block(newStore(a), "block", a -> 0, b -> 0),
        Seq[CommitOutcome](Taken(Nil), Taken(Nil))
      )
      assertEquals(txns(a), Seq("first"))
      assertEquals(txns(b), Seq("first", "next"))
  }

  for (phase <- Seq(CommitPhase.Ratifying, CommitPhase.Ratified))
    two.test(s"if the log is gone that has the decision, the others go on: ${phase.name}") {
      case (home, b) =>
        Seq(home, b).foreach(_.commit(0, "first"))
        val stopped = started(block(newStore(home), "block", home -> 0, b -> 0))((at, _, _) =>
          at == phase
        )
        Files.move(home.folder, home.folder.resolveSibling("moved"))
        assertCommitted(newStore(b).commit(b.log, Seq(exclusive(b, 2, "next"))).head, 2)
        stopped.interrupt()
        Files.move(home.folder.resolveSibling("moved"), home.folder)
    }

  three.test("a table that is dropped after the decision is left out") {
    case (home, dropped, c) =>
      val tables = Seq(home, dropped, c)
      tables.foreach(_.commit(0, "first"))
      val stopped = started(block(newStore(home), "block", tables.map(_ -> 0L): _*))((at, _, _) =>
        at == CommitPhase.Ratified
      )
      Files.move(dropped.folder, dropped.folder.resolveSibling("moved"))
      for (table <- Seq(home, c)) {
        val next = newStore(table).commit(table.log, Seq(exclusive(table, 2, "next"))).head
        assertTaken(table, next, 2)
        assertEquals(txns(table), Seq("first", "block"))
      }
      stopped.interrupt()
      Files.move(dropped.folder.resolveSibling("moved"), dropped.folder)
  }

  two.test("a part that cannot be published is unknown, and the next writer publishes it") {
    case (a, b) =>
      Seq(a, b).foreach(_.commit(0, "first"))
      CommitPhases.observe((at, log, version) =>
        if (at == CommitPhase.Publishing && version == 2 && log == b.log.path.toString)
          throw new java.io.IOException("full")
      )
      val outcomes = block(newStore(a), "block", a -> 0, b -> 0)
      assertCommitted(outcomes.head, 2)
      assertEquals(outcomes(1).asInstanceOf[Unknown].cause.getMessage, "full")
      assertEquals((lastVersion(a), lastVersion(b), blocks(a).size), (2L, 1L, 1))
      CommitPhases.observe(null)
      assertTaken(b, newStore(b).commit(b.log, Seq(exclusive(b, 2, "next"))).head, 2)
      assertEquals(txns(b), Seq("first", "block"))
  }

  two.test("a writer that ignores the reservation is named") { case (a, b) =>
    Seq(a, b).foreach(_.commit(0, "first"))
    CommitPhases.observe((at, log, version) =>
      if (at == CommitPhase.Publishing && version == 2 && log == b.log.path.toString)
        b.overwrite(2, TestTable.info("stock"))
    )
    val outcomes = block(newStore(a), "block", a -> 0, b -> 0)
    assertCommitted(outcomes.head, 2)
    val cause = outcomes(1).asInstanceOf[Unknown].cause.asInstanceOf[CoordinatorException]
    assertEquals(cause.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
    assertEquals((cause.parameters("ours"), cause.parameters("theirs")), ("block", "stock"))
    assertEquals(txns(b), Seq("first", "stock"))
  }

  /** A thread that stops for ever when it first comes to a phase, as a process that is killed. */
  private def started(work: => Any)(stops: (CommitPhase, String, Long) => Boolean): Thread = {
    val thread = new Thread(quietly(work))
    val isThere = new java.util.concurrent.CountDownLatch(1)
    CommitPhases.observe { (phase, log, version) =>
      if (Thread.currentThread eq thread)
        if (stops(phase, log, version)) {
          isThere.countDown()
          while (!Thread.currentThread.isInterrupted) LockSupport.park()
          throw new InterruptedException
        }
    }
    thread.start()
    assert(isThere.await(10, TimeUnit.SECONDS))
    thread
  }

  private def quietly(work: => Any): Runnable = () =>
    try work: Unit
    catch { case _: InterruptedException => }

  for (
    (storage, three) <- Seq(
      "local disk" -> three,
      "LogStore" -> FunFixture.map3(remoteTable, remoteTable, remoteTable)
    )
  ) three.test(
    s"$storage: blocks and writers in random order, some of which stop for ever: all tables or none"
  ) { case (a, b, c) =>
    val tables = Seq(a, b, c)
    for (table <- tables) table.commit(0, "first")
    for (seed <- 0 until FileBlockSuite.Rounds) round(new Random(seed), seed, tables)
  }

  private def round(random: Random, seed: Int, tables: Seq[TestTable]): Unit = {
    val made = ConcurrentHashMap.newKeySet[String]()
    val dead = ConcurrentHashMap.newKeySet[Thread]()
    val plans = (0 until 4).map { n =>
      val some = random.shuffle(tables).take(1 + random.nextInt(3)).sortBy(_.folder.toString)
      (s"$seed-$n", some, new Random(random.nextLong()))
    }
    val owners = new ConcurrentHashMap[Thread, Random]
    CommitPhases.observe { (_, _, _) =>
      val own = owners.get(Thread.currentThread)
      if (own != null) own.nextInt(40) match {
        case 0 =>
          dead.add(Thread.currentThread)
          while (!Thread.currentThread.isInterrupted) LockSupport.park()
          throw new InterruptedException
        case 1 => Thread.sleep(30) // longer than the others wait
        case n if n < 20 => Thread.sleep(0, own.nextInt(500000))
        case _ =>
      }
    }
    val threads = plans.map { case (id, some, own) =>
      val thread = new Thread(quietly(if (tries(id, some)) made.add(id)))
      owners.put(thread, own)
      thread
    }
    threads.foreach(_.start())
    val deadline = 20.seconds.fromNow
    while (threads.exists(t => t.isAlive && !dead.contains(t)) && deadline.hasTimeLeft())
      Thread.sleep(1)
    assert(deadline.hasTimeLeft(), s"seed $seed hangs")
    CommitPhases.observe(null)
    for (table <- tables) assert(tries(s"$seed-last-${table.hashCode}", Seq(table)))
    for ((id, some, _) <- plans) {
      val found = some.map(txns(_).count(_ == id))
      assert(found == some.map(_ => 1) || found == some.map(_ => 0), s"$id: $found")
      if (made.contains(id)) assertEquals(found, some.map(_ => 1), id)
      for (other <- tables.diff(some)) assert(!txns(other).contains(id))
    }
    threads.foreach(_.interrupt())
    threads.foreach(_.join())
  }

  /** Commits like a job that may always be rebased; whether it knows that it has committed. */
  private def tries(id: String, some: Seq[TestTable]): Boolean = {
    val store = newStore(some.head, 10.millis)
    Iterator.range(0, 200).map { _ =>
      val heads = some.map(table => table -> lastVersion(table))
      if (heads.size > 1) block(store, id, heads: _*).head
      else {
        val (table, head) = heads.head
        store.commit(table.log, Seq(exclusive(table, head + 1, id))).head
      }
    }.collectFirst { case Committed(_, _) => true; case Unknown(_) | Failed(_) => false }
      .getOrElse(false)
  }
}

private object FileBlockSuite {
  private val Rounds = sys.env.get("INTERLOCK_ROUNDS").fold(15)(_.toInt)
}
