package io.interlock.coordinator

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Logs in temporary folders, and commits for them. */
trait Tables extends munit.FunSuite {

  /** The log folder of a new table, and a store over it. */
  val table: FunFixture[TestTable] = FunFixture(
    setup = _ => {
      val root = Files.createTempDirectory("interlock-log")
      new TestTable(root, Files.createDirectories(root.resolve("a table%20/_delta_log")))
    },
    teardown = table => deleteAll(table.root)
  )

  private def deleteAll(root: LocalPath): Unit = Using.resource(Files.walk(root)) {
    _.iterator.asScala.toSeq.reverse.foreach(Files.delete)
  }
}

final class TestTable(val root: LocalPath, val folder: LocalPath) {
  val log: TableLog = TableLog(new Path(folder.toUri), new Configuration(false))
  val store = new FileSystemStore(_ => throw new AssertionError("no LogStore on a local disk"))

  def request(version: Long, txnId: String, lines: String*): CommitRequest =
    CommitRequest(version, txnId, "table", "table", (TestTable.info(txnId) +: lines).iterator)

  def commit(version: Long, txnId: String, lines: String*): CommitOutcome =
    store.commit(log, Seq(request(version, txnId, lines: _*))).head

  /** The names of the files in the log folder. */
  def names: Set[String] = Using.resource(Files.list(folder)) {
    _.iterator.asScala.map(_.getFileName.toString).toSet
  }

  def file(version: Long): LocalPath = folder.resolve(LogFolder.commitName(version))

  def read(version: Long): Seq[String] = Files.readAllLines(file(version)).asScala.toSeq
}

object TestTable {
  def info(txnId: String): String =
    s"""{"commitInfo":{"timestamp":1,"operation":"WRITE","txnId":"$txnId"}}"""
}
