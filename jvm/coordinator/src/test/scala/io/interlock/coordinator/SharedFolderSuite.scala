package io.interlock.coordinator

import java.nio.file.{Files, Path => LocalPath, Paths}
import java.util.HexFormat

/** A folder of two users, where nobody may link to a file of another user that he may not write, as
  * Linux has it by default. Root takes these rights from a process of its own; others skip this.
  */
class SharedFolderSuite extends Tables {
  private def nobody(file: LocalPath) = file.getFileSystem.getUserPrincipalLookupService
    .lookupPrincipalByName("nobody")

  private def isProtected = {
    val setting = Paths.get("/proc/sys/fs/protected_hardlinks")
    Files.exists(setting) && Files.readString(setting).trim == "1"
  }

  private def published(table: TestTable, content: StagedFile): String = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val command = Seq("setpriv", "--bounding-set=-fowner,-dac_override", java, "-Xmx128m", "-cp") ++
      Seq(System.getProperty("java.class.path"), WhoPublishes.getClass.getName.stripSuffix("$")) ++
      Seq(table.root.toString, content.name, content.size.toString) :+
      HexFormat.of().formatHex(content.sha256)
    val process =
      new ProcessBuilder(command: _*).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    new String(process.getInputStream.readAllBytes()).trim
  }

  private def check(name: String)(body: (TestTable, StagedFile, Seq[String]) => Unit): Unit =
    table.test(name) { table =>
      assume(isProtected && System.getProperty("user.name") == "root")
      val lines = Seq(TestTable.info("t3"), "x" * (1 << 20))
      val staged = Publisher.ratified(_ => table.logStore)
        .stage(table.log, 3, "t3", lines.iterator).asInstanceOf[StagedFile]
      val file = table.folder.resolve(staged.name)
      Files.setOwner(file, nobody(file))
      body(table, staged, lines)
    }

  check("a commit that another user has staged is published") { (table, staged, lines) =>
    assertEquals(published(table, staged), "Published")
    assertEquals(table.read(3), lines)
    assertEquals(Files.getOwner(table.file(3)).getName, "root")
    assertEquals(table.names, Set(LogFolder.commitName(3)))
  }

  check("it replaces no other commit") { (table, staged, _) =>
    table.overwrite(3, TestTable.info("stock"))
    assertEquals(published(table, staged), "Foreign")
    assertEquals(table.read(3), Seq(TestTable.info("stock")))
    assertEquals(table.names, Set(LogFolder.commitName(3), staged.name))
  }
}

/** A process that publishes a staged commit as version 3. */
object WhoPublishes {
  def main(arguments: Array[String]): Unit = {
    val Array(root, name, size, sha256) = arguments: @unchecked
    val table = new TestTable(Paths.get(root))
    val content = StagedFile(name, size.toLong, HexFormat.of().parseHex(sha256))
    val publication = Publisher.ratified(_ => table.logStore).publish(table.log, 3, content)
    print(publication.getClass.getSimpleName)
  }
}
