package io.interlock.coordinator

import java.net.URI
import java.nio.file.StandardCopyOption.REPLACE_EXISTING
import java.nio.file.{FileSystems, Files, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Using

class LinkProbeSuite extends Tables {
  table.test("a disk with hard links passes, and the probe leaves nothing") { table =>
    assertEquals(LinkProbe.fault(table.folder, Files.createLink(_, _)), None)
    assertEquals(table.names, Set.empty[String])
  }

  table.test("a file system without hard links is refused") { table =>
    val zip = URI.create(s"jar:${table.root.resolve("files.zip").toUri}")
    Using.resource(FileSystems.newFileSystem(zip, Map("create" -> "true").asJava)) { files =>
      val root = files.getPath("/")
      val found = LinkProbe.fault(root, Files.createLink(_, _))
      assert(found.exists(_.startsWith("no hard link can be made")), found)
      assertEquals(Using.resource(Files.list(root))(_.count), 0L)
    }
  }

  private def check(name: String, found: String)(link: (LocalPath, LocalPath) => Any): Unit =
    table.test(name) { table =>
      assertEquals(LinkProbe.fault(table.folder, link), Some(found))
      assertEquals(table.names, Set.empty[String])
    }

  check(
    "a file system that replaces the file is refused",
    "a hard link was made in the place of an existing file"
  )((name, file) => Files.copy(file, name, REPLACE_EXISTING))

  check(
    "a file system that keeps the first and says yes to the second is refused",
    "a hard link was made in the place of an existing file"
  )((name, file) => if (!Files.exists(name)) Files.createLink(name, file))

  check(
    "a file system that replaces the file and says no is refused",
    "an existing file was replaced"
  ) {
    (name, file) =>
      val there = Files.exists(name)
      Files.copy(file, name, REPLACE_EXISTING)
      if (there) throw new java.nio.file.FileAlreadyExistsException(name.toString)
  }

  check("a link to nothing is refused", "a hard link that shows another file") { (name, _) =>
    Files.createFile(name)
  }
}
