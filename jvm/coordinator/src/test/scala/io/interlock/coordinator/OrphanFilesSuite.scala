package io.interlock.coordinator

import java.nio.file.Files
import java.nio.file.attribute.FileTime
import java.util.UUID

class OrphanFilesSuite extends Tables {
  private val hour = 3600L * 1000
  private val id = UUID.randomUUID()
  private val orphans = Set(
    Publisher.temporaryName(5),
    f".${5L}%020d.$id.staged",
    f".${5L}%020d.$id-$id.staged",
    f".${5L}%020d.json.$id.tmp",
    s".probe.$id.first.tmp"
  )
  private val others = Set(
    "00000000000000000005.json",
    "00000000000000000005.checkpoint.parquet",
    "_last_checkpoint",
    ".00000000000000000005.json.crc",
    s"00000000000000000005.$id.tmp",
    s"$id.staged",
    ".hidden"
  )

  private def fill(table: TestTable, ageMillis: Long): Unit = (orphans ++ others).foreach { name =>
    val file = Files.createFile(table.folder.resolve(name))
    val time = FileTime.fromMillis(System.currentTimeMillis() - ageMillis)
    Files.setLastModifiedTime(file, time)
  }

  for ((storage, table) <- Seq("local disk" -> table, "LogStore" -> remoteTable)) {
    table.test(s"$storage: old temporary and staged files go, all else stays") { table =>
      fill(table, 2 * hour)
      Files.createDirectory(table.folder.resolve(f".${6L}%020d.$id.tmp"))
      val deleted = OrphanFiles.sweep(table.log, hour)
      assertEquals(deleted.map(_.getName).toSet, orphans)
      assertEquals(deleted.map(_.getParent).toSet, Set(table.log.path))
      assertEquals(table.names, others + f".${6L}%020d.$id.tmp")
    }

    table.test(s"$storage: young files stay, and those of the future") { table =>
      fill(table, hour / 2)
      assertEquals(OrphanFiles.sweep(table.log, hour), Seq.empty)
      assertEquals(OrphanFiles.sweep(table.log, OrphanFiles.LongestTransaction), Seq.empty)
    }

    table.test(s"$storage: a folder that is not there has no orphans") { table =>
      Files.delete(table.folder)
      assertEquals(OrphanFiles.sweep(table.log, 0), Seq.empty)
    }
  }

  table.test("files that no writer leaves behind are not looked at") { table =>
    val endless = table.folder.resolve("endless")
    Files.createSymbolicLink(endless, endless)
    fill(table, 2 * hour)
    assertEquals(OrphanFiles.sweep(table.log, hour).map(_.getName).toSet, orphans)
  }
}
