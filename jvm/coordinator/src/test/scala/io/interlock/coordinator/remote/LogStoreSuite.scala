package io.interlock.coordinator

import java.io.IOException
import java.lang.{Boolean => JBoolean}
import java.nio.file.Files
import java.util.{Iterator => JIterator}

import io.delta.storage._
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException

class LogStoreSuite extends Tables {
  remoteTable.test("a commit is its lines, stamped, and leaves no other file") { table =>
    assertCommitted(table.commit(0, "t0", "{\"add\":1}", "é"), 0)
    assertLog(table, "t0")
    assertEquals(table.read(0).tail, Seq("{\"add\":1}", "é"))
    assertEquals(CommitLines.stampOf(table.read(0).head), Some(Stamp("filesystem", 0, 0)))
  }

  remoteTable.test("a version that is there is taken, and shown") { table =>
    assertCommitted(table.commit(0, "t0"), 0)
    assertTaken(table, table.commit(0, "t1"), 0)
    assertLog(table, "t0")
  }

  remoteTable.test("a writer that has missed versions is shown all of them") { table =>
    for (version <- Seq(0L, 1L, 2L)) assertCommitted(table.commit(version, s"t$version"), version)
    val outcome = table.newStore.commit(table.log, Seq(table.request(1, "t3"))).head
    assertTaken(table, outcome, 1, 2)
  }

  remoteTable.test("of a batch the first looks at the commit that was made last") { table =>
    assertCommitted(table.commit(0, "t0"), 0)
    val requests = Seq(1L, 2L, 3L).map(version => table.request(version, s"t$version"))
    val looks = OtherScheme.looksAt(table.log) {
      table.store.commit(table.log, requests).zip(requests).foreach { case (made, request) =>
        assertCommitted(made, request.version)
      }
    }
    def number(version: Long) = looks.count(_ == LogFolder.commitName(version))
    assertEquals(number(0), 1)
    assertEquals((number(1), number(2)), (number(3), number(3)), "only while each is made")
    assertLog(table, "t0", "t1", "t2", "t3")
  }

  remoteTable.test("a large commit is staged in a file, which is gone after it") { table =>
    val lines = Vector.tabulate(30)(i => s"$i" * 50000)
    assertCommitted(table.commit(0, "t0", lines: _*), 0)
    assertEquals(table.read(0).tail, lines)
    assertEquals(table.commit(0, "t1", lines: _*), Taken(Seq.empty))
    assertLog(table, "t0")
  }

  remoteTable.test("a version is not made after one that is not there") { table =>
    assertEquals(
      intercept[CoordinatorException](table.commit(1, "t0")).condition,
      "INTERLOCK_LOG_GAP"
    )
  }

  remoteTable.test("a folder in the place of a version is an I/O error") { table =>
    Files.createDirectory(table.file(0))
    val e = intercept[IOException](table.commit(0, "t0"))
    assertEquals(e.getMessage, s"${table.log.file(0)} cannot be made")
    assertEquals(table.names, Set(LogFolder.commitName(0)))
  }

  remoteTable.test("a rename whose reply was lost is a commit") { table =>
    val outcome = OtherScheme.renaming(table.log) { rename =>
      rename()
      throw new IOException("reply lost")
    }(table.commit(0, "t0"))
    assertCommitted(outcome, 0)
    assertLog(table, "t0")
  }

  remoteTable.test("a rename that failed is tried again") { table =>
    val replies = Iterator(false, false, true)
    val outcome = OtherScheme.renaming(table.log) { rename =>
      if (replies.next()) rename() else throw new IOException("not now")
    }(table.commit(0, "t0"))
    assertCommitted(outcome, 0)
    assertEquals(replies.toSeq, Seq.empty)
    assertLog(table, "t0")
  }

  remoteTable.test("a rename that fails again and again leaves the outcome open") { table =>
    OtherScheme.renaming(table.log)(_ => throw new IOException("never"))(
      table.commit(0, "t0")
    ) match {
      case Unknown(unknown: PublishUnknown) => assertEquals(unknown.getCause.getMessage, "never")
      case other => fail(s"$other")
    }
    assertCommitted(table.commit(0, "t0"), 0)
  }

  remoteTable.test("a rename that is forbidden leaves nothing") { table =>
    val e = intercept[IOException] {
      OtherScheme.renaming(table.log)(_ => throw new AccessControlException("no"))(
        table.commit(0, "t0")
      )
    }
    assert(e.getCause.isInstanceOf[AccessControlException], e)
    assertEquals(table.names, Set.empty[String])
  }

  private val unsafe = Seq(new S3SingleDriverLogStore(_), new LocalLogStore(_))
  unsafe.foreach { make =>
    remoteTable.test(
      s"${make(new Configuration(false)).getClass.getSimpleName} cannot refuse a version"
    ) {
      table =>
        val logStore = make(table.log.conf)
        val store = new FileSystemStore(_ => logStore)
        val refused =
          intercept[CoordinatorException](table.commit(store, table.request(0, "t0")))
        assertEquals(refused.condition, "INTERLOCK_NO_PUT_IF_ABSENT")
        // A table cannot be bound to it either.
        assertEquals(
          intercept[CoordinatorException](store.check(table.log)).condition,
          refused.condition
        )
        assertEquals(
          refused.parameters,
          Map(
            "path" -> table.log.path.toString,
            "logStore" -> logStore.getClass.getName,
            "found" -> s"${classOf[OtherFileSystem].getName} has no fs.option.create.conditional.overwrite"
          )
        )
        assertEquals(table.names, Set.empty[String])
    }
  }

  remoteTable.test("a LogStore that cannot refuse a version publishes what a database has let in") {
    table =>
      val overwriting = new LocalLogStore(table.log.conf) {
        override def write(
            path: Path,
            actions: JIterator[String],
            overwrite: JBoolean,
            conf: Configuration
        ): Unit = super.write(path, actions, true, conf)
      }
      val publisher = Publisher.ratified(_ => overwriting)
      val content = publisher.stage(table.log, 0, "t0", table.request(0, "t0").lines)
      assert(publisher.publish(table.log, 0, content).isInstanceOf[Published])
      assert(publisher.publish(table.log, 0, content).isInstanceOf[Published])
      val other = publisher.stage(table.log, 0, "t1", table.request(0, "t1").lines)
      assert(publisher.publish(table.log, 0, other).isInstanceOf[Foreign])
      assertLog(table, "t0")
  }

  test("S3 without hadoop-aws is refused, whatever LogStore it is given") {
    val log =
      TableLog(new Path("s3a://bucket/t/_delta_log"), new Configuration(false))
    val store = new FileSystemStore(_ => new HDFSLogStore(log.conf))
    val request = CommitRequest(0, "t0", "", "table", Iterator(TestTable.info("t0")))
    store.commit(log, Seq(request)) match {
      case Seq(Failed(refused: CoordinatorException)) =>
        assert(refused.parameters("found").contains("No FileSystem for scheme"), refused.parameters)
      case other => fail(s"$other")
    }
  }
}
