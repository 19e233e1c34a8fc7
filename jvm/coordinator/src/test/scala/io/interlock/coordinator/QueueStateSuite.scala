package io.interlock.coordinator

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** Steps of the queue's state that no commit of one process alone comes to. */
class QueueStateSuite extends munit.FunSuite {
  private val log = TableLog(new Path("file:/t/_delta_log"), new Configuration(false))

  private def body(version: Long, length: Long) =
    CommitBody(version, new FileStatus(length, false, 1, 0, 0, log.file(version)), Nil)

  private def onTheirWay(versions: Long*): QueueState[Long] =
    versions.foldLeft(QueueState.empty[Long])((state, version) =>
      state.handIn(version, body(version, 0), seen = 0).fold(answer => fail(s"$answer"), identity)
    )

  test("what waits is sent up to the first gap") {
    val (batch, rest) = onTheirWay(0, 1, 3).nextBatch
    assertEquals(batch.map(_.version), Vector(0L, 1L))
    assertEquals(rest.waiting.map(_.version), Vector(3L))
    assertEquals(rest.nextBatch._1.map(_.version), Vector(3L))
  }

  test("a commit that was sent before the queue started over is not taken for a later one") {
    val (batch, rest) = onTheirWay(1).nextBatch
    val later = rest.startOver.next.handIn(2L, body(1, 0), seen = 1).toOption.get
    val made = later.settle(batch, Seq(Committed(1, body(1, 1).file)))
    assertEquals(made.next.settled(1), Nil)
    assertEquals(made.answers.map(_._1), Vector(1L))
  }

  test("a commit on its way is in view, and not in the log") {
    val state = onTheirWay(1, 2).learn(0, Seq(body(0, 1)))
    assertEquals(state.view(0).commits.map(_.version), Seq(0L, 1L, 2L))
    assertEquals(state.settled(0).map(_.version), Seq(0L))
  }
}
