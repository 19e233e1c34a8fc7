package io.interlock.coordinator.postgres

import io.interlock.coordinator.{CommitContent, Stamp}

/** A commit that this process has published itself, and the table's id after it. */
final private[postgres] case class OwnCommit(txnId: String, tableId: String)

/** What the database knows of a table.
  *
  * @param sequence
  *   counts revocations within the epoch
  * @param head
  *   the last version that was ratified or adopted; -1 for none
  * @param own
  *   the commit at the head, if this process has published it
  * @param published
  *   the last version that is known to be in the log
  */
final private[postgres] case class TableState(
    coordinator: String,
    epoch: Long,
    sequence: Long,
    head: Long,
    published: Long,
    own: Option[OwnCommit]
) {

  /** The same table as it is after a call. */
  def after(reply: Reply): TableState = copy(
    epoch = reply.epoch,
    sequence = reply.sequence,
    head = reply.head,
    published = reply.published,
    own = own.filter(_ => reply.head == head)
  )

  /** What commits carry that are ratified now. */
  def stamp: Stamp = Stamp(coordinator, epoch, sequence)

  /** Whether a commit with this stamp, in the log and not in the database, was ratified by the
    * database's own future: then this is an old copy of it.
    */
  def misses(found: Stamp): Boolean = found.coordinator == coordinator &&
    (found.epoch > epoch || found.epoch == epoch && found.sequence >= sequence)
}

/** A table as `interlock coordinator status` shows it.
  *
  * @param updated
  *   when the row last changed, ISO 8601
  */
final private[postgres] case class TableRow(
    path: String,
    tableId: Option[String],
    epoch: Long,
    sequence: Long,
    head: Long,
    published: Long,
    updated: String
)

/** A ratified commit.
  *
  * @param content
  *   none where the database holds it no longer, or did not send it
  */
final private[postgres] case class Ratified(
    version: Long,
    txnId: String,
    content: Option[CommitContent]
)

/** The answer of a function: its status, the table's state after it, and commits. */
final private[postgres] case class Reply(
    status: String,
    epoch: Long,
    sequence: Long,
    head: Long,
    published: Long,
    commits: Seq[Ratified]
)
