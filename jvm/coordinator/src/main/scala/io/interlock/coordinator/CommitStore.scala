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
  */
final case class CommitRequest(
    version: Long,
    txnId: String,
    tableId: String,
    newTableId: String,
    lines: Iterator[String]
)

/** A commit in the log: what later commits are judged against. */
final case class CommitBody(version: Long, file: FileStatus, lines: Seq[String])

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

/** Where commits of a table are ordered. Implementations serve many threads. */
trait CommitStore extends AutoCloseable {

  /** Makes commits of consecutive versions durable and visible as `N.json`, in order.
    *
    * A request counts only if all before it were committed: after the first that was not, the rest
    * have the outcome [[Taken]] or [[Unknown]] as well.
    *
    * @return
    *   one outcome for each request, in the same order
    * @throws CoordinatorException
    *   where the store refuses all of them; nothing was committed
    */
  def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome]
}
