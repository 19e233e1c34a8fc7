package io.interlock.coordinator

import java.nio.file.Files
import java.nio.file.StandardCopyOption.REPLACE_EXISTING

import io.interlock.coordinator.CommitPhase._

/** Exceptions at each step of a commit, on both kinds of storage. */
class FaultsSuite extends Tables {
  private object Fault extends RuntimeException

  /** Runs `body` with `before` and the fault at `phase` of version `version` of the table. */
  private def failing[A](
      table: TestTable,
      phase: CommitPhase,
      version: Long,
      before: () => Unit = () => ()
  )(body: => A): A = {
    val path = table.log.path.toString
    CommitPhases.observe { (at, log, v) =>
      if (at == phase && log == path && v == version) {
        before()
        throw Fault
      }
    }
    try body
    finally CommitPhases.observe(null)
  }

  private val storages = Seq("local disk" -> table, "LogStore" -> remoteTable)

  for ((storage, table) <- storages; phase <- Seq(Staging, Staged, Publishing))
    table.test(s"$storage: a fault at ${phase.name} leaves nothing") { table =>
      table.commit(0, "t0")
      failing(table, phase, 1)(intercept[Fault.type](table.commit(1, "t1")))
      assertLog(table, "t0")
      val batch = Seq(1L, 2L, 3L).map(v => table.request(v, s"t$v"))
      val outcomes = failing(table, phase, 2)(table.store.commit(table.log, batch))
      assertCommitted(outcomes.head, 1)
      assertEquals(outcomes.tail, Seq(Failed(Fault), Taken(Seq.empty)))
      assertLog(table, "t0", "t1")
    }

  for ((storage, table) <- storages; phase <- Seq(Linked, Published); next <- Seq(1L, 2L))
    table.test(s"$storage: a reply lost at ${phase.name} is looked up, also by a try at $next") {
      table =>
        table.commit(0, "t0")
        assertCommitted(failing(table, phase, 1)(table.commit(1, "t1")), 1)
        assertCommitted(table.commit(next, "t1", "other lines"), 1)
        assertLog(table, "t0", "t1")
        assertCommitted(table.commit(2, "t2"), 2)
    }

  for ((storage, table) <- storages) {
    table.test(s"$storage: a batch goes on after a reply that was looked up") { table =>
      val batch = Seq(0L, 1L, 2L).map(v => table.request(v, s"t$v"))
      val outcomes = failing(table, Linked, 1)(table.store.commit(table.log, batch))
      outcomes.zipWithIndex.foreach { case (outcome, v) => assertCommitted(outcome, v.toLong) }
      assertLog(table, "t0", "t1", "t2")
    }

    table.test(s"$storage: a commit that is gone after its link is unknown, and ends its batch") {
      table =>
        val batch = Seq(0L, 1L, 2L).map(v => table.request(v, s"t$v"))
        val outcomes =
          failing(table, Linked, 1, () => Files.delete(table.file(1)))(
            table.store.commit(table.log, batch)
          )
        assertCommitted(outcomes.head, 0)
        outcomes(1) match {
          case Unknown(unknown: PublishUnknown) => assertEquals(unknown.getCause, Fault)
          case other => fail(s"$other")
        }
        assertEquals(outcomes(2), Taken(Seq.empty))
        assertLog(table, "t0")
    }
  }

  table.test("nobody is told of a commit that another writer replaced at once") { table =>
    var seen = 0
    CommitPhases.observe { (at, log, _) =>
      if (at == Linked && log == table.log.path.toString)
        table.overwrite(0, TestTable.info("stock"))
    }
    val request = table.request(0, "t0").copy(whenSeen = () => seen += 1)
    val outcomes =
      try table.store.commit(table.log, Seq(request))
      finally CommitPhases.observe(null)
    assert(outcomes.head.isInstanceOf[Taken], outcomes)
    assertEquals(seen, 0)
  }

  /** Commits versions 0, 1 and 2 as one batch, with `atLast` when the last can be seen. */
  private def batchOfThree(table: TestTable, lastTableId: String = "table")(
      atLast: => Unit
  ): Seq[CommitOutcome] = {
    val requests = Seq(0L, 1L, 2L).map(v => table.request(v, s"t$v"))
    val last = requests.last.copy(newTableId = lastTableId, whenSeen = () => atLast)
    table.store.commit(table.log, requests.init :+ last)
  }

  private def assertOverwritten(outcome: CommitOutcome): Unit = outcome match {
    case Unknown(replaced: CoordinatorException) =>
      assertEquals(replaced.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
      assertEquals(replaced.parameters("theirs"), "stock")
    case other => fail(s"$other")
  }

  private def assertStopped(table: TestTable, tableId: String): Unit = {
    val request = table.request(3, "t3").copy(tableId = tableId)
    val stopped = intercept[CoordinatorException](table.commit(table.store, request))
    assertEquals(stopped.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
  }

  table.test("a commit that was replaced while the next is staged is not built upon") { table =>
    table.commit(0, "t0")
    CommitPhases.observe { (at, log, _) =>
      if (at == Staged && log == table.log.path.toString)
        table.overwrite(0, TestTable.info("stock"))
    }
    val stopped =
      try intercept[CoordinatorException](table.commit(1, "t1"))
      finally CommitPhases.observe(null)
    assertEquals(stopped.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
    assertLog(table, "stock")
  }

  table.test("a batch whose folder cannot be synced is unknown, and guards nothing") { table =>
    val away = table.root.resolve("away")
    val outcomes = batchOfThree(table)(Files.move(table.folder, away): Unit)
    Files.move(away, table.folder)
    outcomes.foreach {
      case Unknown(_: PublishUnknown) =>
      case other => fail(s"$other")
    }
    assertLog(table, "t0", "t1", "t2")
    Seq(1L, 2L).foreach(v => Files.delete(table.file(v))) // as a disk that lost its power does
    assertCommitted(table.commit(1, "t3"), 1)
    assertLog(table, "t0", "t3")
  }

  table.test("a commit that was replaced before the sync, and is followed, stops the writes") {
    table =>
      val outcomes =
        batchOfThree(table, "other")(table.overwrite(1, TestTable.info("stock")))
      assertCommitted(outcomes.head, 0)
      assertOverwritten(outcomes(1))
      outcomes(2) match {
        case Unknown(unknown: PublishUnknown) =>
          val reason = s"${table.log.file(1)} is not the commit before it"
          assertEquals(unknown.getCause.getMessage, reason)
        case other => fail(s"$other")
      }
      Seq("table", "other").foreach(assertStopped(table, _))
      val next = table.request(3, "t3").copy(tableId = "other")
      assertCommitted(table.commit(table.newStore, next), 3)
      assertLog(table, "t0", "stock", "t2", "t3")
  }

  table.test("checksums that were derived from a commit that was replaced are deleted") { table =>
    val requests = Seq(0L, 1L, 2L).map(v =>
      table.request(v, s"t$v").copy(whenSeen = () => {
        Files.createFile(table.folder.resolve(LogFolder.checksumName(v)))
        if (v == 2) table.overwrite(1, TestTable.info("stock"))
      })
    )
    table.store.commit(table.log, requests)
    assertEquals(table.names.filter(_.endsWith(".crc")), Set(LogFolder.checksumName(0)))
  }

  table.test("a commit that was replaced, and may be followed, stops the writes") { table =>
    def replace(): Unit = {
      val staged = table.names.find(_.endsWith(".tmp")).map(table.folder.resolve).get
      Files.delete(staged)
      Files.createDirectories(staged.resolve("kept")) // so it cannot be deleted
      table.overwrite(1, TestTable.info("stock"))
    }
    val outcomes =
      failing(table, Publishing, 2, () => replace())(batchOfThree(table, "other")(()))
    assertOverwritten(outcomes(1))
    outcomes(2) match {
      case Unknown(_: PublishUnknown) =>
      case other => fail(s"$other")
    }
    Seq("table", "other").foreach(assertStopped(table, _))
  }

  table.test("writes that were stopped go on once the commit is back, and are guarded as before") {
    table =>
      val copy = table.root.resolve("copy")
      batchOfThree(table) {
        Files.copy(table.file(1), copy)
        table.overwrite(1, TestTable.info("stock"))
      }
      assertStopped(table, "table")
      Files.move(copy, table.file(1), REPLACE_EXISTING)
      assertCommitted(table.commit(3, "t3"), 3)
      table.overwrite(3, TestTable.info("stock"))
      val stopped = intercept[CoordinatorException](table.commit(4, "t4"))
      assertEquals(stopped.parameters("ours"), "t3")
  }

  table.test("the last commit of a batch that was replaced before the sync is taken") { table =>
    val outcomes = batchOfThree(table)(table.overwrite(2, TestTable.info("stock")))
    outcomes.init.zipWithIndex.foreach { case (outcome, v) => assertCommitted(outcome, v.toLong) }
    assertTaken(table, outcomes(2), 2)
    assertCommitted(table.commit(3, "t3"), 3)
    assertLog(table, "t0", "t1", "stock", "t3")
  }

  table.test("what would follow a commit that was replaced at once is taken too") { table =>
    val first = table.request(0, "t0")
      .copy(whenSeen = () => table.overwrite(0, TestTable.info("stock")))
    val outcomes = table.store.commit(table.log, Seq(first, table.request(1, "t1")))
    assertTaken(table, outcomes.head, 0)
    assertEquals(outcomes(1), Taken(Seq.empty))
    assertLog(table, "stock")
  }

  table.test("a link that was made after it was looked for is found") { table =>
    CommitPhases.observe { (at, log, _) =>
      if (at == Publishing && log == table.log.path.toString) {
        val staged = table.names.find(_.endsWith(".tmp")).get
        Files.createLink(table.file(0), table.folder.resolve(staged))
        throw Fault
      }
    }
    try assertCommitted(table.commit(0, "t0"), 0)
    finally CommitPhases.observe(null)
    assertLog(table, "t0")
  }
}
