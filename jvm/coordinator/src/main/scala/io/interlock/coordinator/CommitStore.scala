package io.interlock.coordinator

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** The log of a table.
  *
  * @param path
  *   the folder `_delta_log`, fully qualified, links resolved
  */
final case class TableLog(path: Path, conf: Configuration) {

  /** The file of version `version`. */
  def file(version: Long): Path = new Path(path, LogFolder.commitName(version))
}

/** One commit, with the version that it wants.
  *
  * @param txnId
  *   Delta's id of the transaction, which is also in its commitInfo
  * @param tableId
  *   Delta's id of the table that the transaction read; empty for a new table
  * @param newTableId
  *   the id that the table has after the commit
  * @param lines
  *   the actions as JSON, the commitInfo first; read once, by the store, which stamps the first
  * @param isSameTable
  *   whether the log still belongs to the table that the transaction read, false also if that cannot
  *   be found out; asked shortly before the publication
  * @param whenSeen
  *   called if the log is on a local disk and this process publishes the commit: as soon as others
  *   can see it, maybe before it is durable, and again if the publication is retried; must not
  *   throw
  * @param isExclusive
  *   whether only writers with Interlock may write the table: an atomic block may have prepared the
  *   version before then
  */
final case class CommitRequest(
    version: Long,
    txnId: String,
    tableId: String,
    newTableId: String,
    lines: Iterator[String],
    isSameTable: () => Boolean,
    whenSeen: () => Unit = () => (),
    isExclusive: Boolean = false
) {
  def this(
      version: Long,
      txnId: String,
      tableId: String,
      newTableId: String,
      lines: Iterator[String]
  ) = this(version, txnId, tableId, newTableId, lines, () => true)

  /** @throws FileNotFoundException
    *   if the log belongs to another table, or that cannot be found out
    */
  private[coordinator] def requireSameTable(log: TableLog): Unit = if (!isSameTable())
    throw new FileNotFoundException(s"${log.path} is the log of another table now.")
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

/** What happens to one table when several commit together: a commit, or the proof that nobody has
  * committed to it.
  *
  * @param request
  *   none if the table was only read
  * @param tableId
  *   Delta's id of the table
  * @param head
  *   the version before the commit, or up to which the reads were judged
  */
final case class TogetherPart(
    log: TableLog,
    request: Option[CommitRequest],
    tableId: String,
    head: Long
)

/** A commit against which later commits are judged. */
final case class CommitBody(version: Long, file: FileStatus, lines: Seq[String]) {

  /** Whether it is or was in the log; otherwise it is still on its way there. */
  def isThere: Boolean = file.getLen > 0
}

/** The outcome of a request. */
sealed trait CommitOutcome {

  /** Whether the commit is in the log, or may be. */
  private[coordinator] def mayBeThere: Boolean = this match {
    case _: Committed | _: Unknown => true
    case _: Taken | _: Failed => false
  }
}

/** The request's bytes, and no others, are at `N.json`.
  *
  * @param file
  *   the commit's file; its version differs from the requested one if an earlier try had already
  *   committed the request
  */
final case class Committed(version: Long, file: FileStatus) extends CommitOutcome

/** Another commit has the version, and nothing of this one was left behind. It may try a later
  * version.
  *
  * @param winners
  *   known commits from the wanted version on; the list may be incomplete or empty
  */
final case class Taken(winners: Seq[CommitBody]) extends CommitOutcome

/** It could not be found out within the deadline whether the commit was made. Its files must not be
  * deleted.
  */
final case class Unknown(cause: Throwable) extends CommitOutcome

/** The commit failed by an error of its own, and nothing of it was left behind. */
final case class Failed(cause: Throwable) extends CommitOutcome

/** Orders the commits of tables. Implementations are thread-safe. */
trait CommitStore extends AutoCloseable {

  /** Makes commits of consecutive versions durable and visible as `N.json`, in order.
    *
    * A request is committed only if all before it were: after the first that was not, all others
    * are [[Taken]] or [[Unknown]] too. A request that cannot be committed at all is [[Failed]];
    * those before it are still committed.
    *
    * @return
    *   one outcome for each request, in the same order
    * @throws CoordinatorException
    *   if the store refuses all of them; nothing was committed
    */
  def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome]

  /** How many versions each table gets by [[commitTogether]], of which the last one has the commit. */
  def versionsTogether: Int = 1

  /** Makes one commit in each of several tables, or none of them. Once they are decided all become
    * visible, one after the other.
    *
    * @return
    *   one outcome for each part with a commit. If one is [[Taken]] or [[Failed]], or somebody has
    *   committed to a table that was only read, nothing was committed, and the others are [[Taken]]
    *   without winners
    * @throws CoordinatorException
    *   if the store refuses all of them; nothing was committed
    */
  def commitTogether(parts: Seq[TogetherPart]): Seq[CommitOutcome] =
    throw new UnsupportedOperationException(getClass.getName)

  /** Makes the commits visible that are decided and are not in the log yet, as far as the next commit
    * would.
    *
    * @param version
    *   the last one in the log
    */
  def settle(log: TableLog, version: Long): Unit = ()

  /** Checks, before a table is bound to this store, that the store can order its commits.
    *
    * @throws CoordinatorException
    *   if it cannot, with the reason
    */
  def check(log: TableLog): Unit = ()

  /** The lock by which the processes that commit to a table take turns. */
  private[coordinator] def processLock(log: TableLog): ProcessLock = ProcessLock.None
}
