package io.interlock.coordinator

import java.nio.file.Files

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
  private def batchOfThree(table: TestTable)(atLast: => Unit): Seq[CommitOutcome] = {
    CommitPhases.observe { (at, log, version) =>
      if (at == Linked && version == 2 && log == table.log.path.toString) atLast
    }
    try table.store.commit(table.log, Seq(0L, 1L, 2L).map(v => table.request(v, s"t$v")))
    finally CommitPhases.observe(null)
  }

  table.test("a batch whose folder cannot be synced is unknown") { table =>
    val away = table.root.resolve("away")
    val outcomes = batchOfThree(table)(Files.move(table.folder, away): Unit)
    Files.move(away, table.folder)
    outcomes.foreach {
      case Unknown(_: PublishUnknown) =>
      case other => fail(s"$other")
    }
    assertLog(table, "t0", "t1", "t2")
  }

  table.test(
    "a commit of a batch that was replaced before the sync is taken, what follows unknown"
  ) {
    table =>
      val outcomes = batchOfThree(table)(table.overwrite(1, TestTable.info("stock")))
      assertCommitted(outcomes.head, 0)
      assertTaken(table, outcomes(1), 1)
      outcomes(2) match {
        case Unknown(unknown: PublishUnknown) =>
          val reason = s"${table.log.file(1)} is not the commit before it"
          assertEquals(unknown.getCause.getMessage, reason)
        case other => fail(s"$other")
      }
      assertCommitted(table.commit(3, "t3"), 3)
      assertLog(table, "t0", "stock", "t2", "t3")
  }
}
