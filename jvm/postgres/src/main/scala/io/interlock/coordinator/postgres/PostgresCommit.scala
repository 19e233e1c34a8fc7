package io.interlock.coordinator.postgres

import scala.annotation.tailrec
import scala.util.control.NonFatal

import io.interlock.coordinator._

/** Commits the batches of one or more tables, all or none: the database ratifies them in one
  * transaction, then each is published.
  *
  * @param unchanged
  *   tables to which nobody may have committed meanwhile
  */
final private[postgres] class PostgresCommit(
    context: StoreContext,
    batches: Seq[TableBatch],
    unchanged: Seq[Unchanged] = Nil
) {
  import PostgresCommit._

  /** @return
    *   for each batch the outcomes of its requests
    */
  def run(): Seq[Seq[CommitOutcome]] =
    try {
      val outcomes = attempt(batches.map(_.begin()), MostTries)
      batches.zip(outcomes).map { case (batch, found) => batch.end(found) }
    } catch {
      case NonFatal(e) =>
        val found = batches.map(_.failed(e))
        if (found.forall(_.isEmpty)) throw e
        allOrNone(batches.zip(found).map {
          case (_, Some(outcomes)) => outcomes
          case (batch, None) => batch.taken
        })
    }

  @tailrec private def attempt(states: Seq[TableState], tries: Int): Seq[Seq[CommitOutcome]] = {
    val asked = batches.zip(states).map { case (batch, state) => batch.question(state) }
    val ratification = new Ratification(context, asked, unchanged)
    ratification.ask() match {
      case AllRatified(replies) =>
        allOrNone(batches.zip(asked).zip(replies).map { case ((batch, question), reply) =>
          try batch.publish(question, reply, ratification)
          catch { case NonFatal(e) if batches.size > 1 => batch.unknown(e) }
        })
      case Moved(table) =>
        table.settle(context)
        batches.map(_.taken)
      case Refused(question, reply) =>
        val n = asked.indexOf(question)
        batches(n).react(states(n).after(reply), reply) match {
          case Right(outcomes) =>
            allOrNone(batches.map(_.taken).updated(n, outcomes))
          case Left(next) =>
            if (tries == 1) throw Refusals.unsettled(context.settings, reply.status)
            attempt(states.updated(n, next), tries - 1)
        }
      case NotMade(cause) =>
        batches.foreach(_.doubt())
        if (tries == 1) throw cause
        attempt(states, tries - 1)
      case NoAnswer(cause) => batches.map(_.unknown(cause))
    }
  }

  /** The outcomes of several batches; if one may have been made, so may all. */
  private def allOrNone(outcomes: Seq[Seq[CommitOutcome]]): Seq[Seq[CommitOutcome]] =
    if (outcomes.size == 1 || !outcomes.exists(_.exists(_.mayBeThere))) outcomes
    else
      batches.zip(outcomes).map { case (batch, found) =>
        if (found.forall(_.mayBeThere)) found else batch.unknown(NotPublished)
      }
}

private object PostgresCommit {

  /** Each try after the first follows an answer of the database that changed the known state. */
  private val MostTries = 10

  private def NotPublished = new IllegalStateException(
    "The database has ratified it, and another commit has its version in the log."
  )
}
