package io.interlock.coordinator

import java.util.concurrent.{Callable, CyclicBarrier, Executors, TimeUnit}

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

/** Sixteen writers of one log, each with a store of its own, as processes have. */
class RaceSuite extends Tables {
  override val munitTimeout: Duration = 3.minutes // a busy disk syncs slowly

  private val Writers = 16
  private val Versions = 50

  /** What each writer made of `work`. */
  private def together[A](table: TestTable)(work: (Int, FileSystemStore) => A): Seq[A] = {
    val threads = Executors.newFixedThreadPool(Writers)
    val started = new CyclicBarrier(Writers)
    val tasks = (0 until Writers).map { writer =>
      val task: Callable[A] = () => {
        val store = table.newStore
        started.await(2, TimeUnit.MINUTES)
        work(writer, store)
      }
      task
    }
    try threads.invokeAll(tasks.asJava).asScala.map(_.get).toSeq
    finally threads.shutdownNow(): Unit
  }

  private def request(table: TestTable, version: Long, txnId: String): CommitRequest =
    table.request(version, txnId, s"""{"add":{"path":"$txnId"}}""", "x" * 2000)

  /** Asserts that the log is the commits that were acknowledged, each whole. */
  private def assertKept(table: TestTable, acknowledged: Seq[(Long, String)]): Unit = {
    assertLog(table, acknowledged.sortBy(_._1).map(_._2): _*)
    acknowledged.foreach { case (version, txnId) =>
      assertEquals(table.read(version).tail, request(table, version, txnId).lines.toSeq.tail)
    }
  }

  table.test("all want each version at one time: one gets it") { table =>
    val next = new CyclicBarrier(Writers)
    val outcomes = together(table) { (writer, store) =>
      (0L until Versions.toLong).map { version =>
        next.await(2, TimeUnit.MINUTES)
        val txnId = s"w$writer-$version"
        (version, txnId, store.commit(table.log, Seq(request(table, version, txnId))).head)
      }
    }.flatten
    val committed = outcomes.collect { case (version, txnId, _: Committed) => version -> txnId }
    assertEquals(committed.map(_._1).sorted, 0L until Versions.toLong)
    assertKept(table, committed)
    outcomes.foreach {
      case (version, _, taken: Taken) => assertTaken(table, taken, version)
      case (_, _, outcome) => assert(outcome.isInstanceOf[Committed], outcome)
    }
  }

  table.test("each takes the next free version for each of its commits: none is lost") { table =>
    val acknowledged = together(table) { (writer, store) =>
      @tailrec def commit(version: Long, txnId: String): Long =
        store.commit(table.log, Seq(request(table, version, txnId))).head match {
          case Committed(made, _) => made
          case Taken(_) => commit(version + 1, txnId)
          case Unknown(e) => throw e
          case Failed(e) => throw e
        }
      (0 until Versions).scanLeft((-1L, "")) { case ((last, _), i) =>
        val txnId = s"w$writer-$i"
        (commit(last + 1, txnId), txnId)
      }.tail
    }.flatten
    assertEquals(acknowledged.map(_._1).sorted, 0L until Writers.toLong * Versions)
    assertKept(table, acknowledged)
  }
}
