package io.interlock.coordinator

import java.io.{FileNotFoundException, IOException}
import java.nio.file.Files
import java.util.concurrent.{ConcurrentLinkedQueue, CyclicBarrier, TimeUnit}

import scala.jdk.CollectionConverters._

class FileSystemStoreSuite extends Tables {
  private val adds = Seq("{\"add\":1}", "{\"add\":\"é\"}")

  table.test("a commit is its lines, stamped, and leaves no other file") { table =>
    table.commit(0, "t0", adds: _*) match {
      case Committed(0, file) =>
        assertEquals(file.getPath, table.log.file(0))
        assertEquals(file.getLen, Files.size(table.file(0)))
        val time = Files.getLastModifiedTime(table.file(0))
        assertEquals(file.getModificationTime, time.toMillis)
      case other => fail(s"$other")
    }
    assertLog(table, "t0")
    assertEquals(table.read(0).tail, adds)
    assertEquals(CommitLines.stampOf(table.read(0).head), Some(Stamp("filesystem", 0, 0)))
  }

  table.test("a version that is there is taken, and shown") { table =>
    assertCommitted(table.commit(0, "t0", adds: _*), 0)
    assertTaken(table, table.commit(0, "t1"), 0)
    assertTaken(table, table.newStore.commit(table.log, Seq(table.request(0, "t1"))).head, 0)
    assertLog(table, "t0")
  }

  table.test("a version that is there is not shown when it is large") { table =>
    assertCommitted(table.commit(0, "t0", "x" * (1 << 20)), 0)
    assertEquals(table.commit(0, "t1"), Taken(Seq.empty))
  }

  table.test("a commit of another writer, in no form of ours, is taken and shown") { table =>
    table.overwrite(0, "[]")
    assertTaken(table, table.commit(0, "t1"), 0)
    assertEquals(table.read(0), Seq("[]"))
  }

  table.test("a batch is committed in order") { table =>
    val requests = Seq("t0", "t1", "t2").zipWithIndex.map { case (id, v) =>
      table.request(v.toLong, id, adds: _*)
    }
    val outcomes = table.store.commit(table.log, requests)
    outcomes.zipWithIndex.foreach { case (outcome, v) => assertCommitted(outcome, v.toLong) }
    assertLog(table, "t0", "t1", "t2")
    assertEquals(table.store.commit(table.log, Seq.empty), Seq.empty)
  }

  table.test("a batch is staged side by side, linked in order and synced once") { table =>
    val both = new CyclicBarrier(2)
    val steps = new ConcurrentLinkedQueue[(CommitPhase, Long)]
    CommitPhases.observe { (phase, log, version) =>
      if (log == table.log.path.toString) {
        if (phase == CommitPhase.Staging) both.await(60, TimeUnit.SECONDS): Unit
        steps.add(phase -> version): Unit
      }
    }
    try {
      val outcomes = table.store.commit(table.log, Seq(0L, 1L).map(v => table.request(v, s"t$v")))
      outcomes.zipWithIndex.foreach { case (outcome, v) => assertCommitted(outcome, v.toLong) }
    } finally CommitPhases.observe(null)
    import CommitPhase._
    val (staged, after) = steps.asScala.toSeq.splitAt(4)
    assertEquals(staged.toSet, Set(Staging, Staged).flatMap(phase => Set(phase -> 0L, phase -> 1L)))
    val inOrder = Seq(Publishing -> 0L, Linked -> 0L, Publishing -> 1L, Linked -> 1L)
    assertEquals(after, inOrder ++ Seq(Published -> 0L, Published -> 1L))
    assertLog(table, "t0", "t1")
  }

  table.test("a batch stops at the first that is not committed") { table =>
    table.commit(0, "t0")
    table.newStore.commit(table.log, Seq(table.request(1, "other")))
    val requests = Seq(1L, 2L, 3L).map(v => table.request(v, s"t$v"))
    val outcomes = table.store.commit(table.log, requests)
    assertTaken(table, outcomes.head, 1)
    assertEquals(outcomes.tail, Seq(Taken(Seq.empty), Taken(Seq.empty)))
    assertLog(table, "t0", "other")
  }

  table.test("the same transaction again is the same commit, wherever it wants to be") { table =>
    table.commit(0, "t0", adds: _*)
    assertCommitted(table.commit(0, "t0", "other lines"), 0)
    assertCommitted(table.commit(1, "t0"), 0)
    val restarted = table.newStore
    assertCommitted(restarted.commit(table.log, Seq(table.request(0, "t0"))).head, 0)
    assertEquals(table.read(0).tail, adds)
    assertLog(table, "t0")
  }

  table.test("what follows a transaction that was there already is judged again") { table =>
    table.commit(0, "t0")
    val outcomes =
      table.store.commit(table.log, Seq(table.request(1, "t0"), table.request(2, "t1")))
    assertCommitted(outcomes.head, 0)
    assertEquals(outcomes(1), Taken(Seq.empty))
    assertLog(table, "t0")
  }

  table.test("a large commit is written as its lines come") { table =>
    val lines = Vector.tabulate(100)(i => s"$i" * 50000)
    assertCommitted(table.commit(0, "t0", lines: _*), 0)
    assertLog(table, "t0")
    assertEquals(table.read(0).tail, lines)
  }

  table.test("a commitInfo longer than any reader's limit is committed") { table =>
    val longest = "x" * (21 << 20)
    val info = TestTable.info("t0").replace("WRITE", longest)
    val request = CommitRequest(0, "t0", "", "table", Iterator(info, adds.head))
    assertCommitted(table.store.commit(table.log, Seq(request)).head, 0)
    assertLog(table, "t0")
    assertEquals(table.read(0).tail, Seq(adds.head))
    assertCommitted(table.commit(1, "t1"), 1)
  }

  for (isSame <- Seq(false, true))
    table.test(s"whether the table is the same, $isSame, is asked when all else is ready") {
      table =>
        table.commit(0, "t0")
        def isSameTable = {
          assert(table.names.exists(_.endsWith(".tmp")))
          isSame
        }
        val asked = table.request(1, "t1").copy(isSameTable = () => isSameTable)
        table.store.commit(table.log, Seq(asked, table.request(2, "t2"))) match {
          case Seq(made, next) if isSame =>
            assertCommitted(made, 1)
            assertCommitted(next, 2)
            assertLog(table, "t0", "t1", "t2")
          case Seq(Failed(_: FileNotFoundException), Taken(Seq())) => assertLog(table, "t0")
          case other => fail(s"$other")
        }
    }

  table.test("a folder in the place of a version is an I/O error") { table =>
    Files.createDirectory(table.file(0))
    val e = intercept[IOException](table.commit(0, "t0"))
    assertEquals(e.getMessage, s"${table.log.file(0)} cannot be made")
    assertEquals(table.names, Set(LogFolder.commitName(0)))
  }

  table.test("an I/O error within a batch is one commit's, and leaves the rest to try again") {
    table =>
      Files.createDirectory(table.file(1))
      val requests = Seq(0L, 1L, 2L).map(v => table.request(v, s"t$v"))
      val outcomes = table.store.commit(table.log, requests)
      assertCommitted(outcomes.head, 0)
      outcomes.tail match {
        case Seq(Failed(_: IOException), Taken(Seq())) =>
        case other => fail(s"$other")
      }
      assertEquals(table.names, Set(LogFolder.commitName(0), LogFolder.commitName(1)))
  }

  table.test("a log folder that is not there is an I/O error") { table =>
    Files.delete(table.folder)
    intercept[IOException](table.commit(0, "t0"))
  }

  table.test("lines that cannot be had leave nothing") { table =>
    val lines =
      Iterator("x" * 100000, "y").map(line => if (line == "y") sys.error("lines") else line)
    val request = CommitRequest(0, "t0", "", "table", Iterator(TestTable.info("t0")) ++ lines)
    assert(table.store.commit(table.log, Seq(request)).head.isInstanceOf[Failed])
    assertEquals(table.names, Set.empty[String])
  }

  table.test("an interrupted thread makes its commit, and stays interrupted") { table =>
    Thread.currentThread().interrupt()
    val outcome = table.commit(0, "t0")
    assert(Thread.interrupted())
    assertCommitted(outcome, 0)
    assertLog(table, "t0")
  }

  table.test("no version is made after one that is not there") { table =>
    val refused = intercept[CoordinatorException](table.commit(2, "t0"))
    assertEquals(refused.condition, "INTERLOCK_LOG_GAP")
    assertEquals(
      refused.parameters,
      Map("path" -> table.log.path.toString, "version" -> "2", "before" -> "1")
    )
    assertEquals(table.names, Set.empty[String])
    Files.createFile(table.folder.resolve("00000000000000000001.checkpoint.parquet"))
    assertCommitted(table.commit(2, "t0"), 2)
  }
}
