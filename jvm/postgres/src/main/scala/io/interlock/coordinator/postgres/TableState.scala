package io.interlock.coordinator.postgres

import io.interlock.coordinator.{CommitContent, LastCommit, Stamp}

/** The database's state of a table.
  *
  * @param rowId
  *   of the table's row, which belongs to its path
  * @param sequence
  *   the number of revocations in the epoch
  * @param head
  *   the last version that was ratified or adopted; -1 for none
  * @param own
  *   the commit at the head, if this process published it
  * @param published
  *   the last version that is known to be in the log
  */
final private[postgres] case class TableState(
    rowId: String,
    epoch: Long,
    sequence: Long,
    head: Long,
    published: Long,
    own: Option[LastCommit]
) {

  /** The table's state after a call. */
  def after(reply: Reply): TableState = copy(
    epoch = reply.epoch,
    sequence = reply.sequence,
    head = reply.head,
    published = reply.published,
    own = own.filter(_ => reply.head == head && reply.epoch == epoch)
  )

  /** Whether nothing was ratified, revoked or adopted between the two. */
  def isWhere(other: TableState): Boolean =
    epoch == other.epoch && sequence == other.sequence && head == other.head

  /** The stamp of commits that are ratified now. */
  def stamp: Stamp = Stamp(rowId, epoch, sequence)

  /** Whether the database once ratified the commit with this stamp but no longer knows it: then it
    * was restored from an older backup. The stamp of another row says that the table was at another
    * path meanwhile, under which its commits were ordered.
    */
  def misses(found: Stamp): Boolean = found.coordinator == rowId &&
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
  *   none if the database no longer holds it, or did not send it
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
