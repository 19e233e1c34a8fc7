package io.interlock.coordinator.postgres

import java.io.IOException
import java.nio.file.Files
import java.nio.file.StandardCopyOption.REPLACE_EXISTING

import io.interlock.coordinator._

class BatchPublisherSuite extends Tables {
  private val state = TableState("main", 0, 0, 3, 0, None)

  /** Publishes the ratified versions 1, 2 and 3 behind 0, with a database that does not answer. */
  private def publish(table: TestTable)(change: CommitRequest => CommitRequest) =
    publishBy(contextOf(table), table)(change)

  private def contextOf(table: TestTable) =
    new StoreContext(null, null, Publisher.ratified(_ => table.logStore))

  private def publishBy(
      context: StoreContext,
      table: TestTable,
      before: Option[LastCommit] = None
  )(change: CommitRequest => CommitRequest) = {
    import context.publisher
    val requests = Seq(1L, 2L, 3L).map(v => change(table.request(v, s"t$v")))
    val contents = requests.map(r => publisher.stage(table.log, r.version, r.txnId, r.lines))
    val reply =
      Reply("committed", 0, 0, 3, 0, requests.map(r => Ratified(r.version, r.txnId, None)))
    new BatchPublisher(context, table.log, new LogTail(context, table.log), before, requests)(
      state,
      reply,
      contents
    )
  }

  private def assertUnknownAfter(outcomes: Seq[CommitOutcome], message: String): Unit = {
    assertCommitted(outcomes.head, 1)
    outcomes.tail match {
      case Seq(Unknown(one), Unknown(two)) =>
        assertEquals(one.getMessage, message)
        assertEquals(two, one)
      case other => fail(s"not unknown: $other")
    }
  }

  remoteTable.test("commits before one that cannot be looked at stay committed") { table =>
    table.commit(0, "t0")
    Files.writeString(table.file(2), s"${TestTable.info("foreign")}\n")
    var looks = 0 // two by the publisher, and then one for the transaction
    def look(name: String): Unit = if (name == LogFolder.commitName(2)) {
      looks += 1
      if (looks > 2) throw new IOException("no look")
    }
    OtherScheme.lookingAt(table.log)(look)(
      assertUnknownAfter(publish(table)(identity), "no look")
    )
    assertLog(table, "t0", "t1", "foreign")
  }

  for ((kind, of) <- Seq("local" -> table, "remote" -> remoteTable))
    of.test(s"nothing is published in the log of another table, $kind") { table =>
      table.commit(0, "t0")
      assertUnknownAfter(
        publish(table)(r => r.copy(isSameTable = () => r.version == 1)),
        s"${table.log.path} is the log of another table now."
      )
      assertLog(table, "t0", "t1")
    }

  table.test("a look that fails once is repeated") { table =>
    table.commit(0, "t0")
    var looks = 0
    def isSame = {
      looks += 1
      looks != 2
    }
    publish(table)(_.copy(isSameTable = () => isSame)).zip(Seq(1L, 2L, 3L)).foreach {
      case (outcome, version) => assertCommitted(outcome, version)
    }
    assertLog(table, "t0", "t1", "t2", "t3")
  }

  private def observing[A](table: TestTable)(at: (CommitPhase, Long) => Unit)(body: => A): A = {
    CommitPhases.observe((phase, log, version) =>
      if (log == table.log.path.toString) at(phase, version)
    )
    try body
    finally CommitPhases.observe(null)
  }

  table.test("a batch is linked in order and synced once") { table =>
    table.commit(0, "t0")
    val steps = Vector.newBuilder[(CommitPhase, Long)]
    import CommitPhase._
    val outcomes = observing(table) {
      case (phase @ (Linked | Published), version) => steps += phase -> version
      case _ =>
    }(publish(table)(identity))
    outcomes.zip(1L to 3L).foreach { case (outcome, v) => assertCommitted(outcome, v) }
    assertEquals(
      steps.result(),
      Vector(Linked, Published).flatMap(phase => (1L to 3L).map(phase -> _))
    )
    assertLog(table, "t0", "t1", "t2", "t3")
  }

  table.test("a commit that was replaced before the sync, and is followed, stops the writes") {
    table =>
      table.commit(0, "t0")
      val context = contextOf(table)
      val outcomes = observing(table) { (phase, version) =>
        if (phase == CommitPhase.Linked && version == 3) table.overwrite(2, TestTable.info("stock"))
      }(publishBy(context, table)(r => if (r.version == 3) r.copy(newTableId = "other") else r))
      assertCommitted(outcomes.head, 1)
      outcomes.tail match {
        case Seq(Unknown(replaced: CoordinatorException), behind) =>
          assertEquals(replaced.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
          assertEquals(behind, Unknown(replaced))
        case other => fail(s"$other")
      }
      for (id <- Seq("table", "other")) assertStopped(context, table, id)
      assertLog(table, "t0", "t1", "stock", "t3")
  }

  private def assertStopped(context: StoreContext, table: TestTable, tableId: String): Unit = {
    val next = table.request(4, "t4").copy(tableId = tableId)
    val commit = new PostgresCommit(context, Seq(new TableBatch(context, table.log, Seq(next))))
    val stopped = intercept[CoordinatorException](commit.run())
    assertEquals(stopped.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
  }

  table.test("nothing is published behind a commit that was replaced while files were written") {
    table =>
      val context = contextOf(table)
      val Committed(_, file) = table.commit(0, "t0"): @unchecked
      val before = LastCommit.of(table.request(0, "t0"), 0, file)
      table.overwrite(0, TestTable.info("stock"))
      publishBy(context, table, Some(before))(identity).foreach {
        case Unknown(replaced: CoordinatorException) =>
          assertEquals(replaced.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
        case other => fail(s"$other")
      }
      assertStopped(context, table, "table")
      assertLog(table, "stock")
  }

  /** The three commits, after `change` when the first can be seen. */
  private def publishChanging(table: TestTable)(change: => Unit) = publish(table)(request =>
    if (request.version > 1) request else request.copy(whenSeen = () => change)
  )

  table.test("nothing is published behind a commit that was replaced at once") { table =>
    table.commit(0, "t0")
    publishChanging(table)(table.overwrite(1, TestTable.info("stock"))) match {
      // Another process may publish those behind it, as they are ratified.
      case Seq(Unknown(replaced: CoordinatorException), Unknown(_), Unknown(_)) =>
        assertEquals(replaced.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
      case other => fail(s"$other")
    }
    assertLog(table, "t0", "stock")
  }

  table.test("a commit in a new file is still the same, and others are published behind it") {
    table =>
      table.commit(0, "t0")
      val outcomes = publishChanging(table) {
        val copy = Files.copy(table.file(1), table.root.resolve("copy"))
        Files.move(copy, table.file(1), REPLACE_EXISTING): Unit
      }
      outcomes.zip(1L to 3L).foreach { case (outcome, v) => assertCommitted(outcome, v) }
      assertLog(table, "t0", "t1", "t2", "t3")
  }

  table.test("a commit is not taken if another process has published it behind one that is") {
    table =>
      table.commit(0, "t0")
      table.overwrite(1, TestTable.info("stock"))
      table.overwrite(2, TestTable.info("t2"))
      publish(table)(identity) match {
        case Seq(_: Taken, Unknown(_), Unknown(_)) =>
        case other => fail(s"$other")
      }
  }

  table.test("a commit whose file is gone is written once more") { table =>
    table.commit(0, "t0")
    var faults = 0
    def isSameTable = {
      if (faults == 0)
        table.names.filter(_.endsWith(".tmp")).foreach(name =>
          Files.delete(table.folder.resolve(name))
        )
      faults += 1
      true
    }
    publish(table)(_.copy(isSameTable = () => isSameTable)).zip(1L to 3L).foreach {
      case (outcome, version) => assertCommitted(outcome, version)
    }
    assertLog(table, "t0", "t1", "t2", "t3")
  }

  table.test("a batch whose folder cannot be synced is unknown") { table =>
    table.commit(0, "t0")
    val away = table.root.resolve("away")
    val outcomes = publish(table)(request =>
      if (request.version < 3) request
      else request.copy(whenSeen = () => Files.move(table.folder, away): Unit)
    )
    Files.move(away, table.folder)
    outcomes.foreach {
      case Unknown(_: PublishUnknown) =>
      case other => fail(s"$other")
    }
    assertLog(table, "t0", "t1", "t2", "t3")
  }
}
