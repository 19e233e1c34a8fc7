package org.apache.spark.sql.delta.interlock

import scala.annotation.tailrec
import scala.util.Try

import io.delta.storage.commit.{Commit, CommitFailedException}
import io.interlock.coordinator._
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
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
  import CoordinatedTransaction._

  /** Whether [[winner]] is what conflicts are judged by; else Delta reads the log by itself. */
  protected def judgesWinners: Boolean

  protected def tableName: String

  /** Whether the log is still that of the table which was read. Asked by other threads too. */
  protected def isSameTable: Boolean

  /** The queue of the table as it was read; of a new one, as it will be. */
  private lazy val queue: Option[CommitQueue] =
    if (snapshot.version < 0) Coordinators.queue(spark, deltaLog, metadata.configuration, "")
    else {
      val read = snapshot.metadata
      Coordinators.queue(spark, deltaLog, read.configuration, read.id)
    }

  /** What the attempt was judged against; none where it goes alone. */
  private var generation: Option[Long] = None

  // Delta evaluates it first when it commits, and takes any that is there for a coordinator.
  override private[delta] lazy val readSnapshotTableCommitCoordinatorClientOpt
      : Option[TableCommitCoordinatorClient] = queue match {
    case Some(own) =>
      val client = new InterlockCommitCoordinatorClient(
        own,
        () => generation,
        () => isSameTable,
        () => writeChecksum(),
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
    queue.foreach(ForeignWriters.look(tableName, snapshot, _))

    val unjudged = Judgement(attemptVersion, info, preCommitLogSegment, passedAppends)

    /** From the last commit that is in the log, whatever was withdrawn behind it. */
    @tailrec
    def attempt(own: CommitQueue): (Long, Snapshot, CurrentTransactionInfo) = {
      takeUp(judgement.getOrElse(unjudged))
      startOverIfLost(own, attemptVersion)
      own.takeTurn(() => judgeAhead(own, level))
      val result =
        try {
          if (judgement.exists(isLost)) {
            own.startOver()
            takeUp(unjudged)
          }
          val Judgement(next, judged, _, _) = judgement.get
          generation = Some(own.view(next).generation)
          Some(super.doCommitRetryIteratively(next, judged, level))
        } catch {
          case _: CommitWithdrawnException => None
          case _: DeltaConcurrentModificationException if !isJudgedByLog => None
        } finally own.passTurn()
      result match {
        case Some(committed) => committed
        case None =>
          timesLost += 1
          Attempts.pause(spark, tableName, timesLost, isRace = !own.isTakingTurns)
          attempt(own)
      }
    }
    queue.filter(_ => judgesWinners) match {
      case Some(own) => attempt(own)
      case None => super.doCommitRetryIteratively(attemptVersion, info, level)
    }
  }

  /** The appends that the attempt has passed so far. */
  protected var passedAppends: PassedAppends = PassedAppends.none

  /** As far as nothing can be withdrawn. None where nothing is committed, but only checked. */
  private var judgement: Option[Judgement] = None

  private def isCommitting = judgement.nonEmpty

  private def takeUp(judged: Judgement): Unit = {
    judgement = Some(judged)
    preCommitLogSegment = judged.segment
    passedAppends = judged.passedAppends
  }

  /** Whether the last commit that was judged is no longer there: the log was put back to an earlier
    * state, whatever it has at that version now.
    */
  private def isLost(judged: Judgement): Boolean = judged.next > snapshot.version + 1 && {
    val last = judged.segment.deltas.last
    val fs = last.getPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    !Try(fs.getFileStatus(last.getPath)).toOption
      .exists(now =>
        now.getModificationTime == last.getModificationTime && now.getLen == last.getLen
      )
  }

  /** Judges the attempt, while it waits for its turn, against what has come into the log.
    *
    * @return
    *   whether there was anything
    */
  private def judgeAhead(own: CommitQueue, level: IsolationLevel): Boolean =
    DeltaTableV2.withEnrichedUnsupportedTableException(catalogTable) {
      val Judgement(next, info, _, _) = judgement.get
      val found = own.settled(next)
      found.lastOption.foreach { last =>
        val files = found.map(_.file)
        meet(new MissedCommits(deltaLog, found), files)
        resolveConflicts(info, next, last.version, files, level): Unit
      }
      judgement.exists(_.next > next)
    }

  /** Judges an attempt against commits, one behind the other. */
  protected def judge(
      info: CurrentTransactionInfo,
      firstWinningVersion: Long,
      winners: Seq[FileStatus],
      level: IsolationLevel
  ): CurrentTransactionInfo

  override protected def resolveConflicts(
      info: CurrentTransactionInfo,
      firstWinningVersion: Long,
      lastWinningVersion: Long,
      conflictingCommitFiles: Seq[FileStatus],
      level: IsolationLevel
  ): CurrentTransactionInfo =
    if (!judgesWinners)
      super.resolveConflicts(
        info,
        firstWinningVersion,
        lastWinningVersion,
        conflictingCommitFiles,
        level
      )
    else {
      def behind(judged: CurrentTransactionInfo, winners: Seq[FileStatus]) =
        if (winners.isEmpty) judged else judge(judged, firstWinningVersion, winners, level)
      val (there, onTheirWay) = conflictingCommitFiles.span(_.getLen > 0)
      val judged = behind(info, there)
      judgement = judgement.map(before =>
        if (before.next != firstWinningVersion || judged.idempotentCommitAlreadyLandedAt.nonEmpty)
          before
        else
          Judgement(
            firstWinningVersion + there.size,
            judged,
            there.foldLeft(before.segment)(appended),
            passedAppends
          )
      )
      behind(judged, onTheirWay)
    }

  private def appended(segment: LogSegment, file: FileStatus): LogSegment =
    SnapshotManagement.appendCommitToLogSegment(segment, file, FileNames.deltaVersion(file))

  private def meet(commits: MissedCommits, files: Seq[FileStatus]): Unit = {
    missed = commits
    preCommitLogSegment = files.foldLeft(preCommitLogSegment)(appended)
  }

  /** Whether all that the attempt was judged against was made. Waits for what is on its way. */
  private def isJudgedByLog: Boolean = queue.zip(generation).forall { case (own, seen) =>
    own.isSettled(seen)
  }

  private var timesLost = 0

  /** The commits since the attempt, from memory where this process made the last of them. */
  override protected def getConflictingVersions(previousAttempt: Long): Seq[FileStatus] =
    if (!isCommitting) super.getConflictingVersions(previousAttempt)
    else {
      val own = queue.get
      // The version went to another process.
      if (!own.hasTurn) throw new CommitWithdrawnException(previousAttempt)
      startOverIfLost(own, previousAttempt)
      val view = own.view(previousAttempt)
      generation = Some(view.generation)
      if (view.reachesEnd) {
        val files = view.commits.map(_.file)
        meet(new MissedCommits(deltaLog, view.commits), files)
        files
      } else {
        val files = super.getConflictingVersions(previousAttempt)
        if (files.isEmpty) {
          // Nobody has the version: the log ends before what the queue knows.
          own.startOver()
          generation = Some(own.view(previousAttempt).generation)
        }
        missed = new MissedCommits(
          deltaLog,
          view.commits.filter(_.isThere),
          files,
          own.learn(view.generation, _)
        )
        files
      }
    }

  /** Forgets what the queue knows where the next commit to be judged against is no longer where it was:
    * the log was put back to an earlier state.
    */
  private def startOverIfLost(own: CommitQueue, next: Long): Unit =
    own.at(next).filter(_.isThere).map(_.file.getPath).foreach { file =>
      if (!file.getFileSystem(deltaLog.newDeltaHadoopConf()).exists(file)) own.startOver()
    }

  /** What the attempt is judged against now, as it was when that was decided. */
  private var missed = new MissedCommits(deltaLog, Nil)

  /** A commit that the attempt must be judged against. */
  protected def winner(file: FileStatus): WinningCommitSummary = {
    val found = missed.of(FileNames.deltaVersion(file)) match {
      case Some(body) => Winners.summary(body)
      case None => WinningCommitSummary.createFromFileStatus(deltaLog, file)
    }
    val isThere = file.getLen > 0
    if (queue.nonEmpty && isThere)
      ForeignWriters.note(tableName, snapshot, found.commitVersion, found.commitInfo)
    found
  }

  override protected def writeCommitFile(
      attemptVersion: Long,
      lines: Iterator[String],
      info: CurrentTransactionInfo
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) =
    if (!isCommitting) {
      val made = super.writeCommitFile(attemptVersion, lines, info)
      isMade = true
      made
    } else {
      if (queue.get.isTaken(attemptVersion))
        throw new CommitFailedException(true, true, s"Version $attemptVersion is taken.")
      // In turn: the commit before it has left its checksum, on its way or not.
      val checksum = Checksums.derive(queue.get, attemptVersion, generation)(previous =>
        previous.fold(incrementallyDeriveChecksum(attemptVersion, info))(
          deriveChecksum(attemptVersion, info, _)
        )
      )
      writeChecksum = checksum.fold(() => ())(Checksums.writer(spark, deltaLog, attemptVersion, _))
      val client = readSnapshotTableCommitCoordinatorClientOpt.get
      val (commit, committed) = writeCommitFileImpl(attemptVersion, lines, client, info)
      isMade = true
      preCommitLogSegment = arrived(preCommitLogSegment)
      hasChecksum = checksum.nonEmpty
      writeChecksum()
      checksum.foreach(Checksums.remember(commit.getFileStatus, _))
      (checksum, commit, committed)
    }

  /** Whether the commit is in the log, whatever fails afterwards. */
  protected var isMade = false

  private var hasChecksum = false

  /** Writes that of the attempt, once: where the store says when others can see the commit, then, so
    * that they find it. By any thread.
    */
  @volatile private var writeChecksum: () => Unit = () => ()

  /** From the snapshot that was read, or the last winner's checksum, which Delta would trust unproved
    * and not carry.
    */
  override protected def incrementallyDeriveChecksum(
      version: Long,
      info: CurrentTransactionInfo
  ): Option[VersionChecksum] =
    if (queue.isEmpty || snapshot.version == version - 1)
      super.incrementallyDeriveChecksum(version, info)
    else
      Checksums.read(deltaLog, preCommitLogSegment).flatMap(deriveChecksum(version, info, _))

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

  /** Delta replays the log for the statistics of a commit that is due for a checkpoint.
    * [[BackgroundCheckpoints]] decides by itself which is due.
    */
  override protected def isCheckpointNeeded(version: Long, after: Snapshot): Boolean =
    queue.isEmpty && super.isCheckpointNeeded(version, after)

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

private object CoordinatedTransaction {

  /** What an attempt is, judged against all commits before version `next`, which are in the log. */
  final case class Judgement(
      next: Long,
      info: CurrentTransactionInfo,
      segment: LogSegment,
      passedAppends: PassedAppends
  )
}
