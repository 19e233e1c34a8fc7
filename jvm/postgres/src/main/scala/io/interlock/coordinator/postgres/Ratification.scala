package io.interlock.coordinator.postgres

import java.sql.SQLException
import java.util.UUID
import java.util.concurrent.ThreadLocalRandom

import scala.annotation.tailrec
import scala.util.control.NonFatal

import io.interlock.coordinator._
import org.slf4j.LoggerFactory

/** The database's answer for a batch. */
sealed private[postgres] trait Verdict
final private[postgres] case class Answered(reply: Reply) extends Verdict

/** The reply was lost, and the batch is not in the database and never will be. */
final private[postgres] case class NotMade(cause: Throwable) extends Verdict

/** The reply was lost, and the database could not be asked within the deadline. */
final private[postgres] case class NoAnswer(cause: Throwable) extends Verdict

/** The call that ratifies a batch, and the call that asks for its outcome if the reply was lost. */
final private[postgres] class Ratification(
    context: StoreContext,
    log: TableLog,
    requests: Seq[CommitRequest]
) {
  import Ratification._

  private val batchId = UUID.randomUUID()

  /** Until when an answer that was lost is asked for. */
  private lazy val deadline = System.nanoTime + context.settings.unknownDeadline.toNanos

  /** @throws java.sql.SQLException
    *   if the database itself says that it changed nothing
    * @throws CoordinatorException
    *   if the database was not reached
    */
  def ask(state: TableState, headTxn: String, contents: Seq[CommitContent]): Verdict = {
    reached(CommitPhase.Ratifying)
    try {
      val reply = context.database.commit(log, state, headTxn, batchId, requests, contents)
      if (reply.status == "committed") reached(CommitPhase.Ratified)
      Answered(reply)
    } catch {
      case e: CoordinatorException => throw e
      case e: SQLException if Refusals.isFinal(e) => throw e
      case NonFatal(e) => resolve(e)
    }
  }

  /** What became of the batch after it was ratified, by a repair or another change of the table. */
  def outcome(): Verdict =
    try
      answer().getOrElse(NotMade(new PublishUnknown(log.file(requests.head.version), null)))
    catch { case NonFatal(e) => resolve(e) }

  private def answer(): Option[Answered] =
    Some(context.database.outcome(log, batchId)).filter(_.status == "committed").map(Answered)

  private def resolve(lost: Throwable): Verdict = {
    logger.warn(
      s"Coordinator ${context.settings.name} at ${context.settings.place} gave no answer to the " +
        s"commit of version ${requests.head.version} of ${log.path} (${lost.getMessage}): it is " +
        s"asked for up to ${context.settings.unknownDeadline} what became of it."
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
    requests.foreach(request => CommitPhases.reached(phase, log, request.version))
}

private object Ratification {
  private val logger = LoggerFactory.getLogger(classOf[Ratification])

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
