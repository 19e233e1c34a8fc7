package io.interlock.coordinator

class FileSystemStoreSuite extends Tables {
  table.test("a commit is its lines, stamped, and leaves no other file") { table =>
    table.commit(0, "t0", "{\"add\":1}", "{\"add\":2}") match {
      case Committed(0, file) =>
        assertEquals(file.getPath, table.log.file(0))
        assertEquals(file.getLen, java.nio.file.Files.size(table.file(0)))
      case other => fail(s"$other")
    }
    assertEquals(table.names, Set("00000000000000000000.json"))
    assertEquals(table.read(0).tail, Seq("{\"add\":1}", "{\"add\":2}"))
    assertEquals(CommitLines.stampOf(table.read(0).head), Some(Stamp("filesystem", 0, 0)))
  }
}
