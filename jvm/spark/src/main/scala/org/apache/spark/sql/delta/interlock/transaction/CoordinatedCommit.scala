package org.apache.spark.sql.delta.interlock.transaction

import io.delta.storage.commit.{Commit, CommitFailedException}
import io.interlock.coordinator.{CommitQueue, InterlockCommitCoordinatorClient}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient
import org.apache.spark.sql.delta.hooks.{CheckpointHook, ChecksumHook, PostCommitHook}
import org.apache.spark.sql.delta.interlock.log.{
  BackgroundCheckpoints,
  Checksums,
  FreshSnapshot,
  LogListing
}
import org.apache.spark.sql.delta.interlock.transaction.CommitState.{Judged, Made}
import org.apache.spark.sql.delta.util.FileNames

/** Commits a transaction through the queue of its table, with its checksum and the hooks after the
  * commit.
  */
final private[transaction] class CoordinatedCommit(
    transaction: OpenTransaction,
    val queue: CommitQueue
) {
  private val table = transaction.table
  private val times = transaction.times
  private var hasChecksum = false

  /** Writes the checksum of the commit, once. If the store reports when the commit becomes
    * visible, it is written then, so that others find it. Called by any thread.
    */
  @volatile private var checksumFile: Checksums.Prepared = Checksums.NoChecksum

  /** The client that Delta uses as the table's commit coordinator. */
  val client: TableCommitCoordinatorClient = {
    val own = new InterlockCommitCoordinatorClient(
      queue,
      () => generation,
      () => transaction.isSameTable,
      () => checksumFile.write(),
      () => {
        transaction.state = Made
        TransactionExecutionObserver.getObserver.beginBackfill()
      }
    )
    new TableCommitCoordinatorClient(own, table.log.logPath, Map.empty, table.conf, table.log.store)
  }

  /** The generation of the queue's view that the commit was judged against; none if it is sent
    * alone.
    */
  private def generation: Option[Long] = transaction.state match {
    case judged: Judged => judged.generation
    case _ => None
  }

  /** Sends a commit that was judged.
    *
    * @param derived
    *   its checksum, derived from the log
    */
  def write(version: Long, info: CurrentTransactionInfo)(derived: => Option[VersionChecksum])(
      send: => (Commit, CurrentTransactionInfo)
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) = {
    if (queue.isTaken(version))
      throw new CommitFailedException(true, true, s"Version $version is taken.")
    // It has the turn, so the checksum of the commit before it is in memory already.
    val checksum = times.in(TimedPhase.Checksum) {
      Checksums.derive(queue, version, generation)(_.fold(derived)(over(_, version, info)))
    }
    checksumFile = checksum.fold[Checksums.Prepared](Checksums.NoChecksum)(
      times.in(TimedPhase.Checksum)(Checksums.prepare(transaction.session, table.log, version, _))
    )
    val before = System.currentTimeMillis()
    val (commit, committed) =
      try times.in(TimedPhase.Store)(send)
      catch {
        case failed: Throwable =>
          checksum.foreach(Checksums.forget(queue, _))
          checksumFile.discard()
          throw failed
      }
    transaction.preCommitLogSegment = arrived(transaction.preCommitLogSegment)
    hasChecksum = checksum.nonEmpty
    times.in(TimedPhase.Checksum)(checksumFile.write())
    checksum.foreach(Checksums.remember(commit.getFileStatus, _))
    times.in(TimedPhase.Snapshot)(FreshSnapshot.add(
      table.log,
      transaction.preCommitLogSegment,
      commit.getFileStatus,
      checksum,
      before
    ))
    (checksum, commit, committed)
  }

  /** The checksum of a commit, derived from its last winner's if it has any. Delta would use that
    * one without proof, and would not carry it over commits.
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

  /** Replaces the placeholders of commits on their way by the files, which are all there now. */
  private def arrived(segment: LogSegment): LogSegment =
    segment.copy(deltas = segment.deltas.map {
      case file if file.getLen > 0 => file
      case file => queue.at(FileNames.deltaVersion(file)).map(_.file).filter(_.getLen > 0)
          .getOrElse(table.status(file))
    })

  /** Delta's post-commit hooks, with those for checkpoints and checksums replaced by Interlock's.
    */
  def hooks(deltas: Seq[PostCommitHook]): Seq[PostCommitHook] = deltas.collect {
    case CheckpointHook => BackgroundCheckpoints
    case ChecksumHook if !hasChecksum => Checksums
    case other if other != ChecksumHook => other
  }

  /** The snapshot after a large commit; a checkpoint of it is begun. */
  def after(version: Long, commit: Commit, catalogTable: Option[CatalogTable]): Snapshot = {
    val snapshot = LogListing.complete(table.log.updateAfterCommit(
      version,
      Some(commit),
      None,
      transaction.preCommitLogSegment,
      catalogTable
    ))
    BackgroundCheckpoints.write(transaction.session, snapshot, catalogTable)
    snapshot
  }
}
