package io.interlock.coordinator

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path => LocalPath}

import scala.concurrent.duration._

import org.apache.hadoop.conf.Configuration

/** What is made on a local disk has the permissions of Hadoop's setting, whatever the process's. */
class PermissionsSuite extends Tables {
  private def symbols(file: LocalPath) =
    PosixFilePermissions.toString(Files.getPosixFilePermissions(file))

  for (
    (umask, file, folder) <-
      Seq(("000", "rw-rw-rw-", "rwxrwxrwx"), ("077", "rw-------", "rwx------"))
  )
    table.test(s"with fs.permissions.umask-mode = $umask") { table =>
      val conf = new Configuration(false)
      conf.set("fs.permissions.umask-mode", umask)
      val log = table.log.copy(conf = conf)
      LogFolder.of(log).write("written", Iterator.single(Array[Byte](1))): Unit
      val lock = new FileProcessLock(log)
      assertEquals(lock.ask(), ProcessLock.Mine)
      lock.release()
      Files.setAttribute(table.folder, "unix:mode", Integer.parseInt("2755", 8))
      val notes = new Leases(log, "claims")
      notes.put("note", "text", 1.minute)
      for (name <- Seq("written", FileProcessLock.Name, "_interlock/claims/note"))
        assertEquals(symbols(table.folder.resolve(name)), file, name)
      for (name <- Seq("_interlock", "_interlock/claims")) {
        val made = table.folder.resolve(name)
        assertEquals(symbols(made), folder, name)
        val mode = Files.getAttribute(made, "unix:mode").asInstanceOf[Int]
        assert((mode & 0x400) != 0, s"$name has not the group of the folder above")
      }
      assert(notes.remove("note"))
    }
}
