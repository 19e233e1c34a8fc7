package io.interlock.coordinator

import java.lang.{Long => JLong}
import java.util.{Collections, Iterator => JIterator, Map => JMap, Optional}

import scala.jdk.CollectionConverters._

import io.delta.storage.LogStore
import io.delta.storage.commit._
import io.delta.storage.commit.actions.{AbstractMetadata, AbstractProtocol}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Delta's commit coordinator interface, implemented by the queue of one table.
  *
  * Every commit is at `N.json` before it is acknowledged, so there is never a commit to backfill.
  *
  * It makes each commit by itself, judged against the log alone.
  *
  * @param isSameTable
  *   see [[CommitRequest]]
  * @param whenCommitted
  *   called after each commit, on the committing thread
  */
final class InterlockCommitCoordinatorClient(
    private val queue: CommitQueue,
    isSameTable: () => Boolean = () => true,
    whenCommitted: () => Unit = () => ()
) extends CommitCoordinatorClient {

  /** @throws CommitFailedException
    *   as a retryable conflict, if another commit has the version
    * @throws CommitUnknownException
    *   if the outcome is unknown
    */
  override def commit(
      logStore: LogStore,
      conf: Configuration,
      table: TableDescriptor,
      version: Long,
      actions: JIterator[String],
      updated: UpdatedActions
  ): CommitResponse = {
    val lines = actions.asScala.buffered
    val txnId = CommitLines.txnIdOf(lines.head).getOrElse("")
    val inCommitTimestamp = Option.when(
      "true" == updated.getNewMetadata.getConfiguration.get("delta.enableInCommitTimestamps")
    )(updated.getCommitInfo.getCommitTimestamp)
    val request = CommitRequest(
      version,
      txnId,
      if (version == 0) "" else updated.getOldMetadata.getId,
      updated.getNewMetadata.getId,
      lines,
      isSameTable,
      isExclusive = Option(updated.getOldMetadata.getConfiguration.get(ExclusiveKey))
        .exists("true".equalsIgnoreCase)
    )
    queue.submitAlone(request) match {
      case Committed(at, file) =>
        whenCommitted()
        val timestamp = inCommitTimestamp.getOrElse(file.getModificationTime)
        new CommitResponse(new Commit(at, file, timestamp))
      case Taken(_) =>
        throw new CommitFailedException(true, true, s"Version $version is another commit's.")
      case Unknown(cause) =>
        throw new CommitUnknownException(table.getLogPath.toString, version, txnId, cause)
      case Failed(cause) => throw cause
    }
  }

  private val ExclusiveKey = "interlock.exclusive"

  override def getCommits(table: TableDescriptor, from: JLong, to: JLong): GetCommitsResponse =
    new GetCommitsResponse(Collections.emptyList(), -1)

  override def backfillToVersion(
      logStore: LogStore,
      conf: Configuration,
      table: TableDescriptor,
      version: Long,
      lastKnownBackfilled: JLong
  ): Unit = ()

  override def registerTable(
      logPath: Path,
      table: Optional[TableIdentifier],
      version: Long,
      metadata: AbstractMetadata,
      protocol: AbstractProtocol
  ): JMap[String, String] = Collections.emptyMap()

  override def semanticEquals(other: CommitCoordinatorClient): Boolean = other match {
    case that: InterlockCommitCoordinatorClient => that.queue eq queue
    case _ => false
  }
}
