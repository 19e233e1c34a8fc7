package org.apache.spark.sql.delta.interlock

import scala.annotation.tailrec

import io.delta.storage.commit.{Commit, CommitFailedException}
import io.interlock.coordinator._
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.coordinatedcommits.{
  CatalogOwnedTableUtils,
  TableCommitCoordinatorClient
}
import org.apache.spark.sql.delta.hooks.{CheckpointHook, ChecksumHook}
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.FileNames

/** A Delta transaction whose commits go through the queue of its table, where the table says so,
  * and are Delta's own otherwise.
  */
abstract private[interlock] class CoordinatedTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot
) extends OptimisticTransaction(deltaLog, catalogTable, snapshot) {

  /** Whether [[winner]] is what conflicts are judged by; else Delta reads the log by itself. */
  protected def judgesWinners: Boolean

  protected def tableName: String

  /** The queue of the table as it was read; of a new one, as it will be. */
  private lazy val queue: Option[CommitQueue] =
    if (snapshot.version < 0) Coordinators.queue(spark, deltaLog, metadata.configuration, "")
    else {
      val read = snapshot.metadata
      Coordinators.queue(spark, deltaLog, read.configuration, read.id)
    }

  /** What the attempt was judged against; none where it goes alone. */
  private var generation: Option[Long] = None

  private def isQueued: Boolean = queue.nonEmpty && judgesWinners

  /** Not so where only the check for conflicts is run, for a commit that makes no version. */
  private var isCommitting = false

  // Delta evaluates it first when it commits, and takes any that is there for a coordinator.
  override private[delta] lazy val readSnapshotTableCommitCoordinatorClientOpt
      : Option[TableCommitCoordinatorClient] = queue match {
    case Some(own) =>
      val client = new InterlockCommitCoordinatorClient(
        own,
        () => generation,
        () => TransactionExecutionObserver.getObserver.beginBackfill()
      )
      Some(TableCommitCoordinatorClient(client, deltaLog, Map.empty[String, String]))
    case None if snapshot.isCatalogOwned =>
      CatalogOwnedTableUtils.populateTableCommitCoordinatorFromCatalog(
        spark,
        catalogTable,
        snapshot
      )
    case None => snapshot.getTableCommitCoordinatorForWrites
  }

  /** The queue orders the commits; Delta's lock would only keep them from being sent together. */
  override private[delta] def isCommitLockEnabled: Boolean =
    queue.isEmpty && super.isCommitLockEnabled

  override protected def doCommitRetryIteratively(
      attemptVersion: Long,
      info: CurrentTransactionInfo,
      level: IsolationLevel
  ): (Long, Snapshot, CurrentTransactionInfo) = {
    if (queue.nonEmpty) ForeignWriters.warn(tableName, snapshot)
    val segment = preCommitLogSegment

    /** From the snapshot that was read, whatever was withdrawn before. */
    @tailrec
    def attempt(): (Long, Snapshot, CurrentTransactionInfo) = {
      preCommitLogSegment = segment
      queue.foreach(_.takeTurn())
      generation = queue.map(_.view(attemptVersion).generation)
      val result =
        try Some(super.doCommitRetryIteratively(attemptVersion, info, level))
        catch { case _: CommitWithdrawnException => None }
        finally queue.foreach(_.passTurn())
      result match {
        case Some(committed) => committed
        case None =>
          standBack()
          attempt()
      }
    }
    isCommitting = isQueued
    if (isCommitting) attempt() else super.doCommitRetryIteratively(attemptVersion, info, level)
  }

  private var timesLost = 0

  private def standBack(): Unit = {
    timesLost += 1
    Attempts.pause(spark, tableName, timesLost)
  }

  /** The commits since the attempt, from memory where this process made the last of them. */
  override protected def getConflictingVersions(previousAttempt: Long): Seq[FileStatus] =
    if (!isCommitting) super.getConflictingVersions(previousAttempt)
    else {
      val own = queue.get
      own.takeTurn()
      if (own.at(previousAttempt).exists(first => !isThere(first.file)))
        own.startOver()
      val view = own.view(previousAttempt)
      generation = Some(view.generation)
      if (view.reachesEnd) {
        val files = view.commits.map(_.file)
        preCommitLogSegment = files.foldLeft(preCommitLogSegment)((segment, file) =>
          SnapshotManagement.appendCommitToLogSegment(segment, file, FileNames.deltaVersion(file))
        )
        files
      } else {
        standBack()
        val files = super.getConflictingVersions(previousAttempt)
        own.learn(Winners.read(deltaLog, files, view.commits))
        files
      }
    }

  /** Whether a commit of this process is where it was put, or still on its way: the log may have been
    * put back to an earlier state since.
    */
  private def isThere(file: FileStatus): Boolean =
    file.getLen == 0 ||
      file.getPath.getFileSystem(deltaLog.newDeltaHadoopConf()).exists(file.getPath)

  /** A commit that the attempt must be judged against. */
  protected def winner(file: FileStatus): WinningCommitSummary =
    queue.flatMap(_.at(FileNames.deltaVersion(file))) match {
      case Some(body) => Winners.summary(body)
      case None => WinningCommitSummary.createFromFileStatus(deltaLog, file)
    }

  override protected def writeCommitFile(
      attemptVersion: Long,
      lines: Iterator[String],
      info: CurrentTransactionInfo
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) =
    if (!isCommitting) super.writeCommitFile(attemptVersion, lines, info)
    else {
      if (queue.get.isTaken(attemptVersion))
        throw new CommitFailedException(true, true, s"Version $attemptVersion is taken.")
      // In turn: the commit before it has left its checksum, on its way or not.
      val checksum = Checksums.derive(queue.get, attemptVersion, generation)(previous =>
        previous.fold(incrementallyDeriveChecksum(attemptVersion, info))(
          deriveChecksum(attemptVersion, info, _)
        )
      )
      val client = readSnapshotTableCommitCoordinatorClientOpt.get
      val (commit, committed) = writeCommitFileImpl(attemptVersion, lines, client, info)
      preCommitLogSegment = arrived(preCommitLogSegment)
      hasChecksum = checksum.nonEmpty
      checksum.foreach(Checksums.keep(spark, deltaLog, commit.getFileStatus, _))
      (checksum, commit, committed)
    }

  private var hasChecksum = false

  private def deriveChecksum(
      version: Long,
      info: CurrentTransactionInfo,
      previous: VersionChecksum
  ): Option[VersionChecksum] =
    incrementallyDeriveChecksum(
      spark,
      deltaLog,
      version,
      info.finalActionsToCommit,
      Some(info.metadata),
      Some(info.protocol),
      info.op.name,
      Some(info.txnId),
      Right(previous),
      mustIncludeFileSizeHistogram = spark.conf.get(DeltaSQLConf.DELTA_FILE_SIZE_HISTOGRAM_ENABLED),
      includeAddFilesInCrc = Snapshot.shouldIncludeAddFilesInCrc(spark, snapshot, metadata)
    ).toOption

  /** What stood for files on their way gives place to the files: all of them are there now. */
  private def arrived(segment: LogSegment): LogSegment =
    segment.copy(deltas = segment.deltas.map {
      case file if file.getLen > 0 => file
      case file => queue.get.at(FileNames.deltaVersion(file)).map(_.file)
          .filter(_.getLen > 0)
          .getOrElse(file.getPath.getFileSystem(deltaLog.newDeltaHadoopConf())
            .getFileStatus(file.getPath))
    })

  override protected def runPostCommitHooks(committed: CommittedTransaction): Unit =
    super.runPostCommitHooks(
      if (queue.isEmpty) committed
      else
        committed.copy(postCommitHooks = committed.postCommitHooks.collect {
          case CheckpointHook => BackgroundCheckpoints
          case ChecksumHook if !hasChecksum => Checksums
          case other if other != ChecksumHook => other
        })
    )

  override protected def updateAndCheckpoint(
      session: SparkSession,
      log: DeltaLog,
      commitSize: Int,
      version: Long,
      commit: Commit,
      txn: String
  ): Snapshot =
    if (queue.isEmpty) super.updateAndCheckpoint(session, log, commitSize, version, commit, txn)
    else {
      val after =
        log.updateAfterCommit(version, Some(commit), None, preCommitLogSegment, catalogTable)
      BackgroundCheckpoints.write(session, after, catalogTable)
      after
    }
}
