package io.interlock.coordinator

import java.nio.file.Files
import java.nio.file.attribute.FileTime

class OverwrittenSuite extends Tables {
  private def assertRefused(table: TestTable, version: Long, theirs: String): Unit = {
    val lines = Iterator.continually[String](fail("the lines of a refused commit were read"))
    val request = CommitRequest(version, "next", "table", "table", lines)
    val refused = intercept[CoordinatorException](table.commit(table.store, request))
    assertEquals(refused.condition, "INTERLOCK_COMMIT_OVERWRITTEN")
    assertEquals(
      refused.parameters,
      Map(
        "path" -> table.log.path.toString,
        "version" -> "1",
        "ours" -> "t1",
        "theirs" -> theirs
      )
    )
  }

  private def twoCommits(table: TestTable): Unit = {
    table.commit(0, "t0")
    table.commit(1, "t1"): Unit
  }

  table.test("another commit in the place of ours stops the writes of its store") {
    table =>
      twoCommits(table)
      table.overwrite(1, TestTable.info("stock"))
      assertRefused(table, 2, "stock")
      assertRefused(table, 3, "stock")
      assertCommitted(table.newStore.commit(table.log, Seq(table.request(2, "t2"))).head, 2)
      assertLog(table, "t0", "stock", "t2")
  }

  table.test("so does a commit without an id, and a batch is refused as one") { table =>
    twoCommits(table)
    table.overwrite(1, """{"commitInfo":{"operation":"WRITE"}}""")
    assertRefused(table, 2, "a commit without an id")
  }

  table.test("a commit of the same size and time is still another") { table =>
    twoCommits(table)
    val time = Files.getLastModifiedTime(table.file(1))
    val line = table.read(1).head.replace("\"t1\"", "\"t9\"")
    table.overwrite(1, line)
    Files.setLastModifiedTime(table.file(1), time)
    assertRefused(table, 2, "t9")
  }

  table.test("the newest commit is never cleaned away; older ones may be") { table =>
    twoCommits(table)
    Files.delete(table.file(1))
    assertRefused(table, 2, "no commit")
    table.newStore.commit(table.log, Seq(table.request(1, "t1b")))
    Files.move(table.file(1), table.file(5))
    assertCommitted(table.commit(6, "t6"), 6)
  }

  table.test("the same commit in a new file, or at a new time, is the same") { table =>
    twoCommits(table)
    table.overwrite(1, table.read(1).head)
    assertCommitted(table.commit(2, "t2"), 2)
    Files.setLastModifiedTime(table.file(2), FileTime.fromMillis(1))
    assertCommitted(table.commit(3, "t3"), 3)
    assertLog(table, "t0", "t1", "t2", "t3")
  }

  private def anew(version: Long, id: String, tableId: String) =
    CommitRequest(version, id, tableId, "new", Iterator(TestTable.info(id)))

  table.test("so do the first commits of a table that was created anew at the path") { table =>
    twoCommits(table)
    Files.delete(table.file(0))
    Files.delete(table.file(1))
    assertCommitted(table.commit(table.store, anew(0, "n0", "")), 0)
    table.overwrite(0, TestTable.info("stock"))
    intercept[CoordinatorException](table.commit(table.store, anew(1, "n1", "new")))
  }

  table.test("a table that was created anew at the path is not concerned") { table =>
    twoCommits(table)
    Files.delete(table.file(0))
    Files.delete(table.file(1))
    assertCommitted(table.store.commit(table.log, Seq(anew(0, "n0", ""))).head, 0)
    assertCommitted(table.store.commit(table.log, Seq(anew(1, "n1", "new"))).head, 1)
    assertLog(table, "n0", "n1")
    table.overwrite(1, TestTable.info("stock"))
    intercept[CoordinatorException](table.commit(table.store, anew(2, "n2", "new")))
  }
}
