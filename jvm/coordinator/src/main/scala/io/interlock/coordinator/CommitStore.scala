package io.interlock.coordinator

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** A table's log, as the stores see it.
  *
  * @param path
  *   the folder `_delta_log`, fully qualified, links resolved
  */
final case class TableLog(path: Path, conf: Configuration) {

  /** Where version `version` is published. */
  def file(version: Long): Path = new Path(path, LogFolder.commitName(version))
}

/** One commit that wants one version of a table.
  *
  * @param txnId
  *   Delta's id of the transaction, also in its commitInfo
  * @param tableId
  *   Delta's id of the table that the transaction read; empty for a new table
  * @param newTableId
  *   the id that the table has after the commit
  * @param lines
  *   the actions as JSON, the commitInfo first; read once, by the store, which stamps the first
  * @param isSameTable
  *   whether the log is still that of the table which the transaction read: asked next to the
  *   publication, by stores that know the table by its path alone
  * @param whenSeen
  *   called where the log is on a local disk and this process publishes the commit: as soon as others
  *   can see it, maybe before it is durable, and again where a publication is tried again; does not
  *   fail
  */
final case class CommitRequest(
    version: Long,
    txnId: String,
    tableId: String,
    newTableId: String,
    lines: Iterator[String],
    isSameTable: () => Boolean,
    whenSeen: () => Unit = () => ()
) {
  def this(
      version: Long,
      txnId: String,
      tableId: String,
      newTableId: String,
      lines: Iterator[String]
  ) = this(version, txnId, tableId, newTableId, lines, () => true)
}

object CommitRequest {
  def apply(
      version: Long,
      txnId: String,
      tableId: String,
      newTableId: String,
      lines: Iterator[String]
  ): CommitRequest = new CommitRequest(version, txnId, tableId, newTableId, lines)
}

/** A commit in the log: what later commits are judged against. */
final case class CommitBody(version: Long, file: FileStatus, lines: Seq[String]) {

  /** Whether it is in the log, or was; else it is on its way there. */
  def isThere: Boolean = file.getLen > 0
}

/** What became of a request. */
sealed trait CommitOutcome

/** Its bytes, and no others, are at `N.json`.
  *
  * @param file
  *   where; another version than the one asked for if this was the replay of an earlier commit
  */
final case class Committed(version: Long, file: FileStatus) extends CommitOutcome

/** Another commit has the version; nothing of this one is left. It may try a later version.
  *
  * @param winners
  *   the commits that are known to stand in its way, the first at the version it wanted; may be
  *   fewer than there are, or none
  */
final case class Taken(winners: Seq[CommitBody]) extends CommitOutcome

/** Nobody could say, within the deadline, whether the commit was made. Its files must stay. */
final case class Unknown(cause: Throwable) extends CommitOutcome

/** Nothing of it is left, by an error of its own. */
final case class Failed(cause: Throwable) extends CommitOutcome

/** Where commits of a table are ordered. Implementations serve many threads. */
trait CommitStore extends AutoCloseable {

  /** Makes commits of consecutive versions durable and visible as `N.json`, in order.
    *
    * A request counts only if all before it were committed: after the first that was not, the rest
    * have the outcome [[Taken]] or [[Unknown]] as well. One that cannot be committed at all is
    * [[Failed]], and those before it are committed all the same.
    *
    * @return
    *   one outcome for each request, in the same order
    * @throws CoordinatorException
    *   where the store refuses all of them; nothing was committed
    */
  def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome]

  /** To be asked before a table is bound to this store: whether its commits can be ordered here.
    *
    * @throws CoordinatorException
    *   why not
    */
  def check(log: TableLog): Unit = ()

  /** Forgets what this process knows of a log, so that commits are made on top of what is there now,
    * whatever became of earlier ones.
    */
  def forget(log: TableLog): Unit

  /** By which the processes that commit to a table agree whose turn it is. */
  private[coordinator] def processLock(log: TableLog): ProcessLock = ProcessLock.None
}
