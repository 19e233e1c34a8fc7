package io.interlock.coordinator

import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.delta.storage.{HDFSLogStore, LogStore}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Logs in temporary folders, and commits for them. */
trait Tables extends munit.FunSuite {

  /** The log folder of a new table, and a store over it. */
  val table: FunFixture[TestTable] = tables(new TestTable(_))

  /** The same, reached by a scheme of its own and a LogStore that puts if absent. */
  val remoteTable: FunFixture[TestTable] = tables(new RemoteTable(_))

  private def tables(make: LocalPath => TestTable): FunFixture[TestTable] = FunFixture(
    setup = _ => make(Files.createTempDirectory("interlock-log")),
    teardown = table => deleteAll(table.root)
  )

  /** Asserts that the log is exactly these transactions, from version 0, and no other file. */
  def assertLog(table: TestTable, txnIds: String*): Unit = {
    assertEquals(table.names, txnIds.indices.map(v => LogFolder.commitName(v.toLong)).toSet)
    assertEquals(txnIds.indices.map(v => table.txnId(v.toLong)), txnIds)
  }

  def assertCommitted(outcome: CommitOutcome, version: Long): Unit = outcome match {
    case Committed(found, file) =>
      assertEquals(found, version)
      assertEquals(file.getPath.getName, LogFolder.commitName(version))
    case other => fail(s"not committed: $other")
  }

  /** Asserts that `txnIds` are the winners, whole. */
  def assertTaken(table: TestTable, outcome: CommitOutcome, winners: Long*): Unit = outcome match {
    case Taken(bodies) =>
      assertEquals(bodies.map(_.version), winners)
      bodies.foreach { body =>
        assertEquals(body.lines, table.read(body.version))
        assertEquals(body.file.getLen, Files.size(table.file(body.version)))
      }
    case other => fail(s"not taken: $other")
  }

  private def deleteAll(root: LocalPath): Unit = Using.resource(Files.walk(root)) {
    _.iterator.asScala.toSeq.reverse.foreach(Files.delete)
  }
}

class TestTable(val root: LocalPath) {
  val folder: LocalPath = Files.createDirectories(root.resolve("a table%20/_delta_log"))
  lazy val store: FileSystemStore = newStore

  def log: TableLog = TableLog(new Path("file", "", folder.toString), new Configuration(false))

  def logStore: LogStore = throw new AssertionError("a LogStore on a local disk")

  def newStore: FileSystemStore = new FileSystemStore(_ => logStore)

  def request(version: Long, txnId: String, lines: String*): CommitRequest =
    CommitRequest(version, txnId, "table", "table", (TestTable.info(txnId) +: lines).iterator)

  def commit(version: Long, txnId: String, lines: String*): CommitOutcome =
    commit(store, request(version, txnId, lines: _*))

  /** Throws what a commit failed by. */
  def commit(store: CommitStore, request: CommitRequest): CommitOutcome =
    store.commit(log, Seq(request)).head match {
      case Failed(cause) => throw cause
      case outcome => outcome
    }

  /** The names of the files in the log folder. */
  def names: Set[String] = Using.resource(Files.list(folder)) {
    _.iterator.asScala.map(_.getFileName.toString).toSet
  }

  def file(version: Long): LocalPath = folder.resolve(LogFolder.commitName(version))

  def read(version: Long): Seq[String] = Files.readAllLines(file(version)).asScala.toSeq

  def txnId(version: Long): String = CommitLines.txnIdOf(read(version).head).get

  /** Puts another commit in the place of a version, as a writer without Interlock may. */
  def overwrite(version: Long, line: String): Unit = {
    val other = Files.writeString(folder.resolve("other"), s"$line\n")
    Files.move(other, file(version), java.nio.file.StandardCopyOption.ATOMIC_MOVE): Unit
  }
}

final class RemoteTable(root: LocalPath) extends TestTable(root) {
  override val log: TableLog = OtherScheme.log(super.log)
  override val logStore: LogStore = new HDFSLogStore(log.conf)
}

object TestTable {
  def info(txnId: String): String =
    s"""{"commitInfo":{"timestamp":1,"operation":"WRITE","txnId":"$txnId"}}"""
}
