package org.apache.spark.sql.delta.interlock.transaction

import io.delta.storage.commit.{Commit, CommitFailedException}
import io.interlock.coordinator.{CommitQueue, InterlockCommitCoordinatorClient}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient
import org.apache.spark.sql.delta.hooks.{CheckpointHook, ChecksumHook, PostCommitHook}
import org.apache.spark.sql.delta.interlock.log.{BackgroundCheckpoints, Checksums}
import org.apache.spark.sql.delta.interlock.transaction.CommitState.{Judged, Made}
import org.apache.spark.sql.delta.util.FileNames

/** The commit of a transaction through the queue of its table: the file, its checksum, and what
  * follows.
  */
final private[transaction] class CoordinatedCommit(
    transaction: OpenTransaction,
    val queue: CommitQueue
) {
  private val table = transaction.table
  private var hasChecksum = false

  /** Writes the checksum of the attempt, once: where the store says when others can see the commit,
    * then, so that they find it. Called by any thread.
    */
  @volatile private var writeChecksum: () => Unit = () => ()

  /** Delta takes it for the coordinator of the table. */
  val client: TableCommitCoordinatorClient = {
    val own = new InterlockCommitCoordinatorClient(
      queue,
      () => generation,
      () => transaction.isSameTable,
      () => writeChecksum(),
      () => {
        transaction.state = Made
        TransactionExecutionObserver.getObserver.beginBackfill()
      }
    )
    TableCommitCoordinatorClient(own, table.log, Map.empty[String, String])
  }

  /** What the commit was judged against; none where it goes alone. */
  private def generation: Option[Long] = transaction.state match {
    case judged: Judged => judged.generation
    case _ => None
  }

  /** Sends a commit that was judged.
    *
    * @param derived
    *   its checksum, from what is in the log
    */
  def write(version: Long, info: CurrentTransactionInfo)(derived: => Option[VersionChecksum])(
      send: => (Commit, CurrentTransactionInfo)
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) = {
    if (queue.isTaken(version))
      throw new CommitFailedException(true, true, s"Version $version is taken.")
    // In turn: the commit before it has left its checksum, on its way or not.
    val checksum =
      Checksums.derive(queue, version, generation)(_.fold(derived)(over(_, version, info)))
    writeChecksum = checksum.fold(() => ())(
      Checksums.writer(transaction.session, table.log, version, _)
    )
    val (commit, committed) = send
    transaction.preCommitLogSegment = arrived(transaction.preCommitLogSegment)
    hasChecksum = checksum.nonEmpty
    writeChecksum()
    checksum.foreach(Checksums.remember(commit.getFileStatus, _))
    (checksum, commit, committed)
  }

  /** The checksum of a commit that stands on other winners than the version which was read: from the
    * last of them. Delta would trust that unproved, and not carry it.
    */
  def checksum(version: Long, info: CurrentTransactionInfo): Option[VersionChecksum] =
    Checksums.read(table.log, transaction.preCommitLogSegment).flatMap(over(_, version, info))

  private def over(before: VersionChecksum, version: Long, info: CurrentTransactionInfo) =
    Checksums.over(
      transaction.session,
      table.log,
      before,
      version,
      info,
      Snapshot.shouldIncludeAddFilesInCrc(transaction.session, table.snapshot, transaction.metadata)
    )

  /** What stood for files on their way gives place to the files: all of them are there now. */
  private def arrived(segment: LogSegment): LogSegment =
    segment.copy(deltas = segment.deltas.map {
      case file if file.getLen > 0 => file
      case file => queue.at(FileNames.deltaVersion(file)).map(_.file).filter(_.getLen > 0)
          .getOrElse(table.status(file))
    })

  /** Delta's hooks, of which those for checkpoints and checksums give place to our own. */
  def hooks(deltas: Seq[PostCommitHook]): Seq[PostCommitHook] = deltas.collect {
    case CheckpointHook => BackgroundCheckpoints
    case ChecksumHook if !hasChecksum => Checksums
    case other if other != ChecksumHook => other
  }

  /** The snapshot after a large commit, with a checkpoint of it on its way. */
  def after(version: Long, commit: Commit, catalogTable: Option[CatalogTable]): Snapshot = {
    val snapshot = table.log.updateAfterCommit(
      version,
      Some(commit),
      None,
      transaction.preCommitLogSegment,
      catalogTable
    )
    BackgroundCheckpoints.write(transaction.session, snapshot, catalogTable)
    snapshot
  }
}
