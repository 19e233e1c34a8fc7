package org.apache.spark.sql.delta.interlock.log

import scala.util.control.NonFatal

import io.interlock.coordinator.{Causes, SameFile}
import io.interlock.spark.properties.{OtherCoordinator, TablePolicy}
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{
  DeltaLog,
  LastCheckpointInfo,
  LogSegment,
  Snapshot,
  SnapshotManagement,
  UninitializedCheckpointProvider,
  UninitializedV1OrV2ParquetCheckpointProvider,
  VersionChecksum
}

/** The newest snapshot of a table with a policy on a disk of this machine, on S3 or on HDFS, made
  * without listing the log.
  *
  * Delta lists the log before each transaction, under a lock of the table. If it finds a commit
  * whose `.crc` is not there yet, it replays the log by a Spark job, and all other statements on
  * the table wait for that. Here looks at three files show whether the last snapshot is still the
  * newest one, and checksums are carried over the commits that it lacks.
  */
object FreshSnapshot extends Logging {

  /** How many commits may be added without listing the log. */
  private val MostAdded = 20

  /** None if Delta has to find it. */
  def of(log: DeltaLog, table: Option[CatalogTable]): Option[Snapshot] =
    tried(log)(newest(log, table)).flatten

  /** Makes Delta know the newest snapshot, so that it lists no log for a table that was loaded just
    * before. Does nothing where an older snapshot will do.
    *
    * @return
    *   whether the log could be read
    */
  def refresh(log: DeltaLog, table: Option[CatalogTable]): Boolean = tried(log) {
    val now = System.currentTimeMillis()
    if (stalenessLimit == 0) newest(log, table).foreach(found =>
      log.withSnapshotLockInterruptibly(
        if (log.unsafeVolatileSnapshot eq found) NewestSnapshot.install(log, found, now)
      )
    )
  }.nonEmpty

  private def stalenessLimit =
    SparkSession.active.sessionState.conf.getConf(
      DeltaSQLConf.DELTA_ASYNC_UPDATE_STALENESS_TIME_LIMIT
    )

  private def newest(log: DeltaLog, table: Option[CatalogTable]): Option[Snapshot] = {
    val now = System.currentTimeMillis()
    for {
      seen <- Option(log.unsafeVolatileSnapshot) if isFollowed(seen) && !hasCheckpointAtEnd(seen)
      files <- LogFiles.of(log)
      last <- lastSeen(log, files)
      newest <-
        if (last.isNewest) Some(last.snapshot)
        else log.withSnapshotLockInterruptibly(
          (if (log.unsafeVolatileSnapshot eq last.snapshot) Some(last) else lastSeen(log, files))
            .flatMap(grown(files, _, table, now))
        )
    } yield newest
  }

  /** Makes the snapshot after a commit of this process the newest one of the table, unless a later
    * one is known. Delta would list the log while others commit, and may miss a version.
    *
    * @param before
    *   the log up to the commit
    * @param checksum
    *   of the commit, if it could be derived
    * @param asOf
    *   when it was not made yet, in milliseconds of this machine's clock
    */
  def add(
      log: DeltaLog,
      before: LogSegment,
      commit: FileStatus,
      checksum: Option[VersionChecksum],
      asOf: Long
  ): Unit = tried(log) {
    val version = FileNames.deltaVersion(commit)
    val last = log.unsafeVolatileSnapshot
    Option.when(version > last.version) {
      val segment = SnapshotManagement.appendCommitToLogSegment(before, commit, version)
      val whole = withCheckpointOf(segment, last.logSegment)
      install(log, whole, checksum, asOf)
    }
  }: Unit

  /** None if it fails, unless the thread was interrupted. */
  private def tried[A](log: DeltaLog)(find: => A): Option[A] =
    try Some(find)
    catch {
      case NonFatal(failed) if !Causes.areInterrupt(failed) =>
        logWarning(s"The end of the log at ${log.logPath} cannot be read: $failed")
        None
    }

  /** The last snapshot of a table, and what else is in its log.
    *
    * @param next
    *   the commit after it
    */
  final private case class Last(snapshot: Snapshot, next: Option[FileStatus]) {
    def isNewest: Boolean =
      next.isEmpty && laterCheckpoint(snapshot, snapshot.logSegment).isEmpty
  }

  /** None if the log has been replaced or cleaned up since. */
  private def lastSeen(log: DeltaLog, files: LogFiles): Option[Last] =
    Option(log.unsafeVolatileSnapshot).filter(isFollowed).flatMap { last =>
      val known = Seq(last.logSegment.deltas.last, last.logSegment.deltas.head).distinct
      val asked = known.map(_.getPath) :+ commitFile(log, last.version + 1)
      val found = files.look(asked, known.size)
      val isThere = known.zip(found).forall { case (file, now) =>
        now.exists(SameFile(file, _))
      }
      Option.when(isThere)(Last(last, found.last))
    }

  /** Whether the log is long and its last version has a checkpoint, as where each version has one: a
    * segment that begins with it has no commit at its end, so Delta has to find it.
    */
  private def hasCheckpointAtEnd(last: Snapshot): Boolean = {
    val longest = MostAdded + last.deltaLog.checkpointInterval(last.metadata)
    last.logSegment.deltas.size > longest &&
    LastCheckpointFile.recently(last.deltaLog).exists(_.version == last.version)
  }

  private def isFollowed(last: Snapshot) =
    last.version >= 0 &&
      TablePolicy.coordinatorOf(last.metadata.configuration).nonEmpty &&
      last.tableCommitCoordinatorClientOpt.isEmpty && !last.isCatalogOwned &&
      last.logSegment.deltas.lastOption.exists(_.getPath == commitFile(last.deltaLog, last.version))

  /** A snapshot with the commits that were made since, and the last checkpoint if that is later. */
  private def grown(
      files: LogFiles,
      last: Last,
      table: Option[CatalogTable],
      now: Long
  ): Option[Snapshot] = {
    val Last(snapshot, next) = last
    val log = snapshot.deltaLog
    val later = Iterator.from(2).map(n => commitFile(log, snapshot.version + n))
      .grouped(files.ahead).flatMap(files.look(_, 0))
    val commits = (Iterator(next) ++ later).take(MostAdded + 1).takeWhile(_.nonEmpty).flatten.toSeq
    val appended = commits.foldLeft(snapshot.logSegment)((segment, file) =>
      SnapshotManagement.appendCommitToLogSegment(segment, file, segment.version + 1)
    )
    val checkpoint = laterCheckpoint(snapshot, appended)
    if (commits.isEmpty && checkpoint.isEmpty) Some(snapshot)
    else Option.when(commits.size <= MostAdded)(
      checkpoint.fold(appended)(beginningWithFile(files, log, _, appended).getOrElse(
        log.getLogSegmentAfterCommit(None, table, snapshot.checkpointProvider)
      ))
    ).flatMap { segment =>
      Checksums.read(log, segment).filter(isWhole).filter(isOurs)
        .map(checksum => install(log, segment, Some(checksum), now))
    }
  }

  private def isWhole(checksum: VersionChecksum) =
    checksum.metadata != null && checksum.protocol != null

  /** Whether the table has not got another coordinator, which Delta would ask for later commits. */
  private def isOurs(checksum: VersionChecksum) = OtherCoordinator
    .of(checksum.metadata.configuration, checksum.protocol.readerAndWriterFeatureNames).isEmpty

  /** A checkpoint of the last version of all is of no use: a segment has to end with a commit. */
  private def laterCheckpoint(last: Snapshot, segment: LogSegment): Option[LastCheckpointInfo] =
    Option.when(segment.deltas.size > last.deltaLog.checkpointInterval(last.metadata))(
      LastCheckpointFile.recently(last.deltaLog)
    ).flatten.filter(checkpoint =>
      checkpoint.version > segment.checkpointProvider.version &&
        checkpoint.version < segment.version
    )

  /** The segment that begins with a checkpoint; none if that is not one whole file, so that Delta
    * has to look for its files, or for an earlier checkpoint.
    */
  private def beginningWithFile(
      files: LogFiles,
      log: DeltaLog,
      checkpoint: LastCheckpointInfo,
      segment: LogSegment
  ): Option[LogSegment] = {
    import checkpoint.version
    val isWhole = checkpoint.parts.isEmpty && checkpoint.v2Checkpoint.isEmpty
    for {
      path <- Option.when(isWhole)(FileNames.checkpointFileSingular(log.logPath, version))
      file <- files.look(Seq(path), expected = 1).head
      if file.getLen > 0 && checkpoint.sizeInBytes.forall(_ == file.getLen)
      provider = UninitializedV1OrV2ParquetCheckpointProvider(version, file, log.logPath, None)
    } yield beginningWith(provider, segment)
  }

  private def withCheckpointOf(segment: LogSegment, last: LogSegment): LogSegment =
    if (last.checkpointProvider.version <= segment.checkpointProvider.version) segment
    else beginningWith(last.checkpointProvider, segment)

  private def beginningWith(
      checkpoint: UninitializedCheckpointProvider,
      segment: LogSegment
  ): LogSegment = segment.copy(
    checkpointProvider = checkpoint,
    deltas = segment.deltas.filter(FileNames.getFileVersion(_) > checkpoint.version)
  )

  /** @param asOf
    *   when the segment had all commits, in milliseconds
    */
  private def install(
      log: DeltaLog,
      segment: LogSegment,
      checksum: Option[VersionChecksum],
      asOf: Long
  ): Snapshot = log.withSnapshotLockInterruptibly {
    def reach(segment: LogSegment) = (segment.version, segment.checkpointProvider.version)
    val last = log.unsafeVolatileSnapshot
    if (Ordering[(Long, Long)].gteq(reach(last.logSegment), reach(segment))) last
    else NewestSnapshot.install(
      log,
      new Snapshot(log.logPath, segment.version, segment, log, checksum),
      asOf
    )
  }

  private def commitFile(log: DeltaLog, version: Long) =
    FileNames.unsafeDeltaFile(log.logPath, version)
}
