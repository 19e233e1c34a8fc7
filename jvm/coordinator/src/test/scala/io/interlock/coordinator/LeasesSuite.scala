package io.interlock.coordinator

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.file.{Files, NoSuchFileException, Paths}

import scala.concurrent.duration._
import scala.util.Using

class LeasesSuite extends Tables {
  private def notes(
      table: TestTable,
      kind: String = "claims",
      deadAfter: FiniteDuration = 1.second
  ) =
    new Leases(table.log, kind, deadAfter)

  private def files(table: TestTable) = Option(
    table.folder.resolve("_interlock/claims").toFile.list()
  ).fold(Set.empty[String])(_.toSet)

  for ((where, fixture) <- Seq("on a disk" -> table, "elsewhere" -> remoteTable)) {
    fixture.test(s"$where, a note is there until it is removed") { table =>
      assertEquals(notes(table).all(), Nil)
      assertEquals(files(table), Set.empty[String])
      notes(table).put("a", "1", 1.minute)
      notes(table).put("a", "2", 1.minute)
      assertEquals(notes(table).own, Seq("a" -> "2"))
      assertEquals(notes(table).all(), Seq("a" -> "2"))
      assertEquals(notes(table, "running").all(), Nil)
      assert(notes(table).remove("a"))
      assert(!notes(table).remove("a"))
      assertEquals(notes(table).all(), Nil)
      assertEquals(files(table), Set.empty[String])
    }
  }

  table.test("a note ends by itself") { table =>
    notes(table).put("a", "1", 100.millis)
    eventually(notes(table).all().isEmpty)
    assertEquals(files(table), Set.empty[String])
  }

  table.test("a note that cannot be replaced is not renewed") { table =>
    val claims = table.folder.resolve("_interlock/claims")
    def renewed(id: String) = Files.getLastModifiedTime(claims.resolve(id))
    val own = notes(table, deadAfter = 1.minute)
    own.put("a", "1", 1.minute)
    Files.createDirectory(claims.resolve(".a.tmp"))
    intercept[IOException](own.put("a", "2", 1.minute))
    assertEquals(own.own, Nil)
    assertEquals(own.all(), Nil, "it is no other process's")
    own.put("b", "1", 1.minute)
    val left = renewed("a")
    for (_ <- 1 to 2) {
      val before = renewed("b")
      eventually(renewed("b").compareTo(before) > 0)
    }
    assertEquals(renewed("a"), left)
    assert(!own.remove("a"), "it had ended")
    assertEquals(files(table), Set("b"))
    assert(own.remove("b"))
  }

  table.test("a file that could not be replaced is nobody's once it is dead") { table =>
    notes(table).put("a", "1", 1.minute)
    Files.createDirectory(table.folder.resolve("_interlock/claims/.a.tmp"))
    intercept[IOException](notes(table).put("a", "2", 1.minute))
    eventually {
      assertEquals(notes(table).all(), Nil)
      files(table).isEmpty
    }
  }

  table.test("a file that could not be deleted is deleted later, and is nobody's until then") {
    table =>
      notes(table).put("a", "1", 1.minute)
      val file = table.folder.resolve("_interlock/claims/a")
      Files.delete(file)
      Files.createDirectories(file.resolve("in its way"))
      intercept[IOException](notes(table).remove("a"))
      assertEquals(notes(table).all(), Nil)
      Files.delete(file.resolve("in its way"))
      Files.delete(file)
      Files.writeString(file, "1")
      eventually(files(table).isEmpty)
  }

  table.test("the folder of a table that was dropped is not made again") { table =>
    Files.delete(table.folder)
    intercept[NoSuchFileException](notes(table).put("a", "1", 1.minute))
    assertEquals(notes(table).own, Nil)
    assert(!Files.exists(table.folder))
    Files.createDirectory(table.folder)
  }

  table.test("a note is alive as long as its process, even if its clock is wrong") { table =>
    val process = LeaseProcess.start(table)
    try {
      val file = table.folder.resolve("_interlock/claims/other")
      assertEquals(notes(table).all(), Seq("other" -> "text"))
      Files.setLastModifiedTime(file, java.nio.file.attribute.FileTime.fromMillis(0))
      // It is renewed every 2 s, so a reader with this patience never finds it dead.
      val patient = notes(table, deadAfter = 4.seconds)
      val end = System.nanoTime + 5.seconds.toNanos
      while (System.nanoTime < end) assertEquals(patient.all().size, 1)
    } finally process.destroyForcibly().waitFor(): Unit
    val killed = System.nanoTime
    eventually(notes(table).all().isEmpty)
    assert((System.nanoTime - killed).nanos < 4.seconds)
    assertEquals(files(table), Set.empty[String])
  }

  private val two = FunFixture.map2(table, remoteTable)

  two.test("a storage that does not answer holds the notes of no other table") {
    case (near, far) =>
      notes(far).put("a", "1", 1.minute)
      notes(near).put("a", "1", 1.minute)
      OtherScheme.unanswering(far.log) { silence =>
        silence.awaitMet()
        val file = near.folder.resolve("_interlock/claims/a")
        val before = Files.getLastModifiedTime(file)
        eventually(Files.getLastModifiedTime(file).compareTo(before) > 0)
        Leases.close(1.second)
        assertEquals(files(near), Set.empty[String])
        assertEquals(files(far), Set("a"))
      }
      assertEquals((notes(near).own, notes(far).own), (Nil, Nil))
  }

  private def eventually(condition: => Boolean): Unit = {
    val end = System.nanoTime + 10.seconds.toNanos
    while (!condition) {
      assert(System.nanoTime < end, "in time")
      Thread.sleep(20)
    }
  }
}

/** A process that has a note. */
object LeaseProcess {
  def start(table: TestTable): Process = {
    val java = Paths.get(System.getProperty("java.home"), "bin", "java").toString
    val command = Seq(java, "-Xmx128m", "-cp", System.getProperty("java.class.path")) ++
      Seq(getClass.getName.stripSuffix("$"), table.root.toString)
    val process =
      new ProcessBuilder(command: _*).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    Using.resource(new BufferedReader(new InputStreamReader(process.getInputStream)))(_.readLine())
    process
  }

  def main(arguments: Array[String]): Unit = {
    new Leases(new TestTable(Paths.get(arguments.head)).log, "claims").put(
      "other",
      "text",
      1.minute
    )
    println("ready")
    Thread.sleep(1.minute.toMillis)
  }
}
