package io.interlock.coordinator.postgres

import java.sql.SQLException
import java.util.UUID
import java.util.concurrent.ThreadLocalRandom

import scala.annotation.tailrec
import scala.util.control.NonFatal

import io.interlock.coordinator._
import org.slf4j.LoggerFactory

/** What the database is asked for a table. */
sealed private[postgres] trait Question {
  def log: TableLog

  /** Whether the reply is a refusal. */
  def refuses(reply: Reply): Boolean
}

/** A batch of commits.
  *
  * @param state
  *   the known state of the table
  * @param headTxn
  *   the transaction in the log at the version before the first request; "" if it has none, null if
  *   the log has no such version
  */
final private[postgres] case class Batch(
    log: TableLog,
    state: TableState,
    headTxn: String,
    requests: Seq[CommitRequest],
    contents: Seq[CommitContent]
) extends Question {
  override def refuses(reply: Reply): Boolean = reply.status != "committed"
}

/** A table that was read up to a version, with no commit behind it. */
final private[postgres] case class Unchanged(log: TableLog, tableId: String, head: Long)
    extends Question {

  override def refuses(reply: Reply): Boolean = reply.status != "tail" || reply.head != head

  /** Publishes what the database has ratified behind the version, so that it can be read, or tells
    * the database of commits that it does not know.
    */
  def settle(context: StoreContext): Unit = {
    val tail = new LogTail(context, log)
    val now = tail.settleAll(context.database.attach(log, tableId, head))
    if (now.head < head) tail.adopt(now, head): Unit
  }
}

/** The database's answer. */
sealed private[postgres] trait Verdict

/** All batches are ratified; these are the replies, in their order. */
final private[postgres] case class AllRatified(replies: Seq[Reply]) extends Verdict

/** None is, by the reply to one of them. */
final private[postgres] case class Refused(asked: Batch, reply: Reply) extends Verdict

/** None is, since somebody has committed to a table that must be unchanged. */
final private[postgres] case class Moved(table: Unchanged) extends Verdict

/** The reply was lost, and the batches are not in the database and never will be. */
final private[postgres] case class NotMade(cause: Throwable) extends Verdict

/** The reply was lost, and the database could not be asked within the deadline. */
final private[postgres] case class NoAnswer(cause: Throwable) extends Verdict

/** The transaction that ratifies the batches of one or more tables, and the call that asks for its
  * outcome if the reply was lost. For use once.
  */
final private[postgres] class Ratification(
    context: StoreContext,
    batches: Seq[Batch],
    unchanged: Seq[Unchanged]
) {
  import Ratification._

  private val attempt = UUID.randomUUID()
  private val began = System.nanoTime
  private var nanos = 0L

  /** Until when an answer that was lost is asked for. */
  private lazy val deadline = System.nanoTime + context.settings.unknownDeadline.toNanos

  /** Whether the reply took so long that the state has to be checked before it is acted on. */
  def tookLong: Boolean = nanos > LongPause

  /** @throws java.sql.SQLException
    *   if the database itself says that it changed nothing
    * @throws CoordinatorException
    *   if the database was not reached
    */
  def ask(): Verdict = {
    reached(CommitPhase.Ratifying)
    // All processes lock the rows of several tables in the same order.
    val inOrder = (batches ++ unchanged).sortBy(_.log.path.toString)
    try {
      val replies = inOrder.zip(context.database.commit(attempt, inOrder)).toMap
      val verdict = replies.collectFirst {
        case (asked: Batch, reply) if asked.refuses(reply) => Refused(asked, reply)
        case (table: Unchanged, reply) if table.refuses(reply) => Moved(table)
      }.getOrElse(AllRatified(batches.map(replies)))
      if (verdict.isInstanceOf[AllRatified]) reached(CommitPhase.Ratified)
      verdict
    } catch {
      case e: CoordinatorException => throw e
      case e: SQLException if Refusals.isFinal(e) => throw e
      case NonFatal(e) => resolve(e)
    } finally nanos = System.nanoTime - began
  }

  /** What became of a table's batch after it was ratified, by a repair or another change of the
    * table.
    */
  def outcome(log: TableLog): Verdict =
    try
      answer(log).fold[Verdict](NotMade(new PublishUnknown(log.path, null)))(reply =>
        AllRatified(Seq(reply))
      )
    catch { case NonFatal(e) => resolve(e) }

  private def answer(log: TableLog): Option[Reply] =
    Some(context.database.outcome(log, attempt)).filter(_.status == "committed")

  /** The first table's answer is that of all; unless a batch has been revoked since. */
  private def answer(): Option[Verdict] = {
    val replies = batches.to(LazyList).map(batch => answer(batch.log))
    Option.when(replies.forall(_.nonEmpty))(AllRatified(replies.flatten))
  }

  private def resolve(lost: Throwable): Verdict = {
    val commits =
      batches.map(batch => s"version ${batch.requests.head.version} of ${batch.log.path}")
    logger.warn(
      s"Coordinator ${context.settings.name} at ${context.settings.place} gave no answer to the " +
        s"commit of ${commits.mkString(", ")} (${lost.getMessage}): it is asked for up to " +
        s"${context.settings.unknownDeadline} what became of it."
    )
    resolve(lost, deadline, FirstPause)
  }

  @tailrec private def resolve(lost: Throwable, deadline: Long, pause: Long): Verdict = {
    val verdict =
      try answer().getOrElse(NotMade(lost))
      catch { case NonFatal(e) => NoAnswer(if (e eq lost) e else { e.addSuppressed(lost); e }) }
    verdict match {
      case _: NoAnswer if System.nanoTime < deadline && Pause(jittered(pause)) =>
        resolve(lost, deadline, (pause * 2).min(LongestPause))
      case found => found
    }
  }

  private def jittered(pause: Long): Long =
    ThreadLocalRandom.current().nextLong(pause / 2, pause + 1)

  private def reached(phase: CommitPhase): Unit =
    for (batch <- batches; request <- batch.requests)
      CommitPhases.reached(phase, batch.log, request.version)
}

private object Ratification {
  private val logger = LoggerFactory.getLogger(classOf[Ratification])

  private val LongPause = 1000000000L

  // The pause between two questions, in milliseconds.
  private val FirstPause = 50L
  private val LongestPause = 1000L
}

private[postgres] object Pause {

  /** Waits, and returns whether it waited the whole time: an interrupt ends it and stays set. */
  def apply(millis: Long): Boolean =
    try {
      Thread.sleep(millis)
      true
    } catch {
      case _: InterruptedException =>
        Thread.currentThread().interrupt()
        false
    }
}
