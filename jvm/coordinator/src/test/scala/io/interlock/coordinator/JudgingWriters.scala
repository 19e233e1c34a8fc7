package io.interlock.coordinator

import java.util.UUID
import java.util.concurrent.atomic.AtomicInteger

import scala.annotation.tailrec

/** Writers of one process: each judges itself as a transaction does, and its commit says of which
  * transaction it was judged to be the next one.
  *
  * @param judgeNanos
  *   how long it takes to judge against one commit
  */
final class JudgingWriters(log: TableLog, store: CommitStore, judgeNanos: Long) {
  import JudgingWriters._

  private val queue = new CommitQueue(log, store)
  private val folder = LogFolder.of(log)

  val committed = new AtomicInteger
  @volatile var longestWaitNanos: Long = 0

  /** Writes as long as the next version is wanted. */
  def run(isWanted: Long => Boolean): Unit = {
    var base = Base(0, "")
    while (isWanted(base.next)) {
      val start = System.nanoTime
      base = commit(base, UUID.randomUUID().toString)
      committed.incrementAndGet()
      val waited = System.nanoTime - start
      synchronized { longestWaitNanos = longestWaitNanos.max(waited) }
    }
  }

  private def commit(read: Base, txnId: String): Base = {
    // Against what is in the log: that stays, whatever is withdrawn.
    var settled = read
    def against(base: Base, missed: Seq[CommitBody]): Base = {
      val there = missed.takeWhile(_.isThere)
      val judged = judge(base, there)
      if (base == settled) settled = judged
      judge(judged, missed.drop(there.size))
    }
    def ahead(): Boolean = {
      val found = queue.settled(settled.next)
      against(settled, found): Unit
      found.nonEmpty
    }
    @tailrec def nextTry(base: Base, seen: Long): Base =
      if (queue.isTaken(base.next)) {
        val (view, missed) = look(base)
        nextTry(against(base, missed), view)
      } else
        queue.submit(request(base, txnId), seen) match {
          case Right(Committed(version, _)) => Base(version + 1, txnId)
          case Right(_: Taken) =>
            queue.takeTurn(() => ahead())
            val from = if (settled.next > base.next) settled else base
            val (view, missed) = look(from)
            nextTry(against(from, missed), view)
          case Left(_) =>
            queue.passTurn()
            queue.takeTurn(() => ahead())
            nextTry(settled, queue.view(settled.next).generation)
          case Right(other) => throw new IllegalStateException(other.toString)
        }
    queue.takeTurn(() => ahead())
    try nextTry(settled, queue.view(settled.next).generation)
    finally queue.passTurn()
  }

  private def look(base: Base): (Long, Seq[CommitBody]) = {
    val view = queue.view(base.next)
    view.generation -> {
      if (view.reachesEnd) view.commits
      else {
        val known = view.commits.filter(_.isThere).map(body => body.version -> body).toMap
        val read = Iterator.iterate(base.next)(_ + 1)
          .map(version => known.get(version).orElse(folder.body(version)))
          .takeWhile(_.nonEmpty).flatten.toVector
        queue.learn(view.generation, read)
        read
      }
    }
  }

  private def judge(base: Base, missed: Seq[CommitBody]): Base = {
    burn(judgeNanos * missed.size)
    val before = missed.lastOption.flatMap(body => CommitLines.txnIdOf(body.lines.head))
    Base(base.next + missed.size, before.getOrElse(base.before))
  }

  private def burn(nanos: Long): Unit = {
    val end = System.nanoTime + nanos
    while (System.nanoTime < end) Thread.onSpinWait()
  }

  private def request(base: Base, txnId: String) = CommitRequest(
    base.next,
    txnId,
    "table",
    "table",
    Iterator(TestTable.info(txnId), s"""{"before":"${base.before}"}""")
  )
}

object JudgingWriters {

  /** @param next
    *   the version that is wanted
    * @param before
    *   the transaction before it
    */
  final private case class Base(next: Long, before: String)

  /** The versions of a log, from 1 on, that were judged against another commit than stands there. */
  def misjudged(log: TableLog): Seq[Long] = {
    val folder = LogFolder.of(log)
    val commits =
      Iterator.iterate(0L)(_ + 1).map(folder.body).takeWhile(_.nonEmpty).flatten.toVector
    commits.zip(commits.drop(1)).collect {
      case (before, commit)
          if commit.lines.last != s"""{"before":"${CommitLines.txnIdOf(
              before.lines.head
            ).get}"}""" =>
        commit.version
    }
  }
}
