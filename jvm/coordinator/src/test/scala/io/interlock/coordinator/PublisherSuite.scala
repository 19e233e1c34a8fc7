package io.interlock.coordinator

import java.io.IOException
import java.nio.file.Files

/** Publishing of commits that a database has let in. */
class PublisherSuite extends Tables {
  private val large = "x" * (1 << 20)

  private def check(name: String)(body: (TestTable, Publisher) => Unit): Unit =
    for ((storage, table) <- Seq("local disk" -> table, "LogStore" -> remoteTable))
      table.test(s"$storage: $name") { table =>
        body(table, Publisher.ratified(_ => table.logStore))
      }

  private def stage(table: TestTable, publisher: Publisher, line: String): CommitContent =
    publisher.stage(table.log, 3, "t3", Iterator(TestTable.info("t3"), line))

  for ((size, line) <- Seq("small" -> "x", "large" -> large)) {
    check(s"a $size commit is published once and found the second time") {
      (table, publisher) =>
        val content = stage(table, publisher, line)
        val expected = Seq(TestTable.info("t3"), line)
        assertEquals(content.size, expected.map(_.length + 1L).sum)
        (1 to 2).foreach { _ =>
          val Published(file) = publisher.publish(table.log, 3, content): @unchecked
          assertEquals(file.getLen, content.size)
          assertEquals(table.read(3), expected)
          assertEquals(table.names, Set(LogFolder.commitName(3)))
        }
    }

    check(s"a $size commit does not replace another") { (table, publisher) =>
      table.overwrite(3, TestTable.info("stock"))
      val content = stage(table, publisher, line)
      val Foreign(file) = publisher.publish(table.log, 3, content): @unchecked
      assertEquals(file.getLen, Files.size(table.file(3)))
      publisher.discard(table.log, content)
      assertEquals(table.read(3), Seq(TestTable.info("stock")))
      assertEquals(table.names, Set(LogFolder.commitName(3)))
    }
  }

  check("a commit of the same length is another") { (table, publisher) =>
    val content = stage(table, publisher, "x")
    table.overwrite(3, TestTable.info("t9") + "\nx")
    assertEquals(Files.size(table.file(3)), content.size)
    assert(publisher.publish(table.log, 3, content).isInstanceOf[Foreign])
  }

  table.test("who publishes a commit says so once it can be seen, of its own only") { table =>
    val publisher = Publisher.ratified(_ => table.logStore)
    var seen = Vector.empty[Set[String]]
    def publish(): Publication =
      publisher.publish(table.log, 3, stage(table, publisher, "x"), () => seen :+= table.names)
    assert(publish().isInstanceOf[Published])
    assertEquals(seen, Vector(Set(LogFolder.commitName(3))))
    table.overwrite(3, TestTable.info("stock"))
    assert(publish().isInstanceOf[Foreign])
    assertEquals(seen.size, 1)
  }

  table.test(
    "no commit of a group is durable if the folder cannot be synced, which is tried once"
  ) {
    table =>
      var tries = 0
      def sync(): Unit = {
        tries += 1
        throw new IOException("no sync")
      }
      val group = new Publisher.Group(table.log, _ => table.logStore, () => sync())
      val publisher = Publisher.exclusive(_ => table.logStore)
      for (version <- Seq(0L, 1L)) {
        val content = publisher.stage(table.log, version, s"t$version", Iterator("x"))
        assert(group.put(version, content, () => ()).isInstanceOf[Published])
      }
      for (version <- Seq(0L, 1L))
        assertEquals(
          intercept[PublishUnknown](group.settle(version)).getCause.getMessage,
          "no sync"
        )
      assertEquals(tries, 1)
  }

  check("a staged file says whose it is") { (table, publisher) =>
    val StagedFile(name, size, _) = stage(table, publisher, large): @unchecked
    assert(name.matches("""\.00000000000000000003\.t3-.{36}\.staged"""), name)
    assertEquals(Files.size(table.folder.resolve(name)), size)
  }

  check("a staged file that is gone cannot be published") { (table, publisher) =>
    val content = stage(table, publisher, large)
    publisher.discard(table.log, content)
    intercept[IOException](publisher.publish(table.log, 3, content))
    assertEquals(table.names, Set.empty[String])
  }
}
