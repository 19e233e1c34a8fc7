package io.interlock.coordinator

import java.nio.file.Files
import java.util.concurrent.{CyclicBarrier, Executors}
import java.util.{Collections, Map => JMap, Optional, UUID}

import scala.concurrent.duration.DurationInt
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}

import io.delta.storage.commit._
import io.delta.storage.commit.actions.{AbstractCommitInfo, AbstractMetadata, AbstractProtocol}

/** What Delta asks of a commit coordinator, of ours over the file system, on a real folder. */
class ContractSuite extends Tables {
  private def client(table: TestTable) =
    new InterlockCommitCoordinatorClient(new CommitQueue(table.log, table.newStore))

  private def descriptor(table: TestTable) =
    new TableDescriptor(table.log.path, Optional.empty(), Collections.emptyMap())

  private def commit(
      client: CommitCoordinatorClient,
      table: TestTable,
      version: Long,
      txnId: String = UUID.randomUUID().toString
  ): Commit = {
    val lines = Seq(s"""{"commitInfo":{"operation":"WRITE","txnId":"$txnId"}}""")
    client.commit(
      null,
      table.log.conf,
      descriptor(table),
      version,
      lines.iterator.asJava,
      updated
    ).getCommit
  }

  private def failure(commit: => Any): CommitFailedException =
    intercept[CommitFailedException] { val _ = commit }

  table.test("a commit is its version's file, at once") { log =>
    val made = commit(client(log), log, 0)
    assertEquals(made.getVersion, 0L)
    assertEquals(made.getFileStatus.getPath, log.log.file(0))
    assertEquals(made.getFileStatus.getLen, Files.size(log.file(0)))
    assertEquals(made.getCommitTimestamp, made.getFileStatus.getModificationTime)
  }

  table.test("a version that is taken: a conflict, to be retried with a later one") { log =>
    val (first, second) = (client(log), client(log))
    commit(first, log, 0)
    val taken = failure(commit(second, log, 0))
    assert(taken.getRetryable && taken.getConflict)
    assertEquals(commit(second, log, 1).getVersion, 1L)
  }

  table.test("the same commit again is the same commit") { log =>
    val own = client(log)
    val made = commit(own, log, 0, "one")
    assertEquals(commit(own, log, 0, "one").getFileStatus, made.getFileStatus)
    assertEquals(commit(client(log), log, 0, "one").getVersion, 0L)
    assertLog(log, "one")
  }

  table.test("there is never a commit to backfill, in whatever range or order it is asked for") {
    log =>
      val own = client(log)
      (0L to 3L).foreach(commit(own, log, _))
      val before = log.names
      for {
        from <- Seq[java.lang.Long](null, 0L, 2L, 9L)
        to <- Seq[java.lang.Long](null, 1L, 3L, 9L)
      } {
        val known = own.getCommits(descriptor(log), from, to)
        assertEquals(known.getCommits.size, 0)
        assertEquals(known.getLatestTableVersion, -1L)
      }
      Seq(3L, 1L, 2L, 2L).foreach(own.backfillToVersion(
        null,
        log.log.conf,
        descriptor(log),
        _,
        null
      ))
      assertEquals(log.names, before)
      assertEquals(
        own.registerTable(log.log.path, Optional.empty(), -1, NoMetadata, NoProtocol).size,
        0
      )
  }

  table.test("clients of one queue are the same, of two are not") { log =>
    val own = client(log)
    assert(own.semanticEquals(own))
    assert(!own.semanticEquals(client(log)))
  }

  table.test("eleven writers with eleven commits each: all there once, in an order without gaps") {
    log =>
      val threads = Executors.newFixedThreadPool(11)
      implicit val executor: ExecutionContext = ExecutionContext.fromExecutor(threads)
      val start = new CyclicBarrier(11)
      val writers = (1 to 11).map { writer =>
        Future {
          val own = client(log)
          start.await()
          (1 to 11).map(number => commitNext(own, log, s"$writer-$number"))
        }
      }
      val made = Await.result(Future.sequence(writers), 2.minutes).flatten
      threads.shutdown()
      assertEquals(made.map(_._1).sorted, (0L until 121L).toVector)
      made.foreach { case (version, txnId) => assertEquals(log.txnId(version), txnId) }
  }

  /** Tries version after version; the log has no gap after any try. */
  private def commitNext(
      client: CommitCoordinatorClient,
      table: TestTable,
      txnId: String
  ): (Long, String) =
    Iterator.iterate(table.names.count(_.endsWith(".json")).toLong)(_ + 1).map { version =>
      val tried = Try(commit(client, table, version, txnId))
      val there = table.names.filter(_.endsWith(".json"))
      if (there != there.toSeq.indices.map(i => LogFolder.commitName(i.toLong)).toSet)
        sys.error(s"A gap in $there")
      tried match {
        case Success(made) => Some(made.getVersion -> txnId)
        case Failure(taken: CommitFailedException) if taken.getRetryable && taken.getConflict =>
          None
        case Failure(other) => throw other
      }
    }.collectFirst { case Some(made) => made }.get

  private def updated =
    new UpdatedActions(NoCommitInfo, NoMetadata, NoProtocol, NoMetadata, NoProtocol)

  private object NoCommitInfo extends AbstractCommitInfo {
    override def getCommitTimestamp: Long = throw new IllegalStateException("It has none")
  }

  private object NoProtocol extends AbstractProtocol {
    override def getMinReaderVersion: Int = 1
    override def getMinWriterVersion: Int = 2
    override def getReaderFeatures: java.util.Set[String] = Collections.emptySet()
    override def getWriterFeatures: java.util.Set[String] = Collections.emptySet()
  }

  private object NoMetadata extends AbstractMetadata {
    override def getId: String = "table"
    override def getName: String = ""
    override def getDescription: String = ""
    override def getProvider: String = "parquet"
    override def getFormatOptions: JMap[String, String] = Collections.emptyMap()
    override def getSchemaString: String = "{}"
    override def getPartitionColumns: java.util.List[String] = Collections.emptyList()
    override def getConfiguration: JMap[String, String] = Collections.emptyMap()
    override def getCreatedTime: java.lang.Long = 0L
  }
}
