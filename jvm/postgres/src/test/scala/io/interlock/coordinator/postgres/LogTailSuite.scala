package io.interlock.coordinator.postgres

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import io.interlock.coordinator.{LogFolder, OtherScheme, Publisher, StagedFile, Tables, TestTable}

class LogTailSuite extends Tables {
  remoteTable.test("a commit that another process publishes meanwhile is in its place") { table =>
    val content = s"${TestTable.info("t0")}\n".getBytes(UTF_8)
    val sha256 = LogFolder.newDigest().digest(content)
    val staged = Files.write(table.folder.resolve(".0.staged"), content)
    val commit = Ratified(0, "t0", Some(StagedFile(".0.staged", content.length.toLong, sha256)))
    val tail = new LogTail(
      new StoreContext(null, null, Publisher.ratified(_ => table.logStore)),
      table.log
    )
    def settled = tail.settle(TableState("main", 0, 0, 0, -1, None), Seq(commit))
    OtherScheme.lookingAt(table.log) { name =>
      if (name == ".0.staged" && Files.exists(staged)) Files.move(staged, table.file(0)): Unit
    }(assertEquals(settled, LogTail.InPlace(Vector(commit))))
    assertLog(table, "t0")
  }
}
