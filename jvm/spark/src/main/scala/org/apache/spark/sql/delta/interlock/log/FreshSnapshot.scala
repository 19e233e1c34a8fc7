package org.apache.spark.sql.delta.interlock.log

import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}
import java.util.Locale

import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import io.interlock.spark.properties.TableProperties
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.CatalogTable
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

/** The newest snapshot of a table with a policy on a disk of this machine, made without listing the
  * log.
  *
  * Delta lists the log before each transaction, under a lock of the table. If it finds a commit
  * whose `.crc` is not there yet, it replays the log by a Spark job, and all other statements on
  * the table wait for that. Here two looks at files show whether the last snapshot is still the
  * newest one, and checksums are carried over the commits that it lacks.
  */
private[interlock] object FreshSnapshot extends Logging {

  /** How many commits may be added without listing the log. */
  private val MostAdded = 20

  /** Types of disks that only one machine has. A network disk may say for some seconds that a file
    * of another machine is not there, and lists it.
    */
  private val OwnDisks = Set(
    "apfs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hfs",
    "ntfs",
    "overlay",
    "tmpfs",
    "xfs",
    "zfs"
  )
  private val onOwnDisk =
    CacheBuilder.newBuilder().maximumSize(10000).build[Path, java.lang.Boolean]()

  /** None if Delta has to find it. */
  def of(log: DeltaLog, table: Option[CatalogTable]): Option[Snapshot] =
    orNone(log) {
      val now = System.currentTimeMillis()
      lastSeen(log).flatMap { last =>
        if (commit(log, last.version + 1).isEmpty && laterCheckpoint(last, last.logSegment).isEmpty)
          Some(last)
        else log.withSnapshotLockInterruptibly(lastSeen(log).flatMap(grown(_, table, now)))
      }
    }

  /** Makes the snapshot after a commit of this process the newest one of the table, unless a later
    * one is known.
    *
    * @param before
    *   the log up to the commit
    */
  def add(
      log: DeltaLog,
      before: LogSegment,
      commit: FileStatus,
      checksum: VersionChecksum
  ): Unit = orNone(log) {
    val version = FileNames.deltaVersion(commit)
    val last = log.unsafeVolatileSnapshot
    Option.when(version > last.version) {
      val segment = SnapshotManagement.appendCommitToLogSegment(before, commit, version)
      val whole = withCheckpointOf(segment, last.logSegment)
      install(log, whole, checksum, commit.getModificationTime)
    }
  }: Unit

  /** The snapshot of an earlier version, made from a later one; none if that begins with a later
    * checkpoint, or no checksum of the version is proved.
    */
  def at(version: Long, later: Snapshot): Option[Snapshot] = {
    val log = later.deltaLog
    val segment = later.logSegment
    val deltas = segment.deltas.takeWhile(FileNames.getFileVersion(_) <= version)
    for {
      commit <- deltas.lastOption if commit.getPath == commitFile(log, version)
      time = commit.getModificationTime
      earlier = segment
        .copy(version = version, deltas = deltas, lastCommitFileModificationTimestamp = time)
      checksum <- Checksums.read(log, earlier) if isWhole(checksum)
    } yield new Snapshot(log.logPath, version, earlier, log, Some(checksum))
  }

  private def orNone[A](log: DeltaLog)(find: => Option[A]): Option[A] =
    try find
    catch {
      case NonFatal(failed) =>
        logWarning(s"The end of the log at ${log.logPath} cannot be read.", failed)
        None
    }

  /** The last snapshot of the table, if the log has not been replaced or cleaned up since. */
  private def lastSeen(log: DeltaLog): Option[Snapshot] =
    Option(log.unsafeVolatileSnapshot).filter(last =>
      isFollowed(last) && isThere(last.logSegment.deltas.last) &&
        isThere(last.logSegment.deltas.head)
    )

  private def isFollowed(last: Snapshot) =
    last.version >= 0 && isOnOwnDisk(last.path) &&
      TableProperties.coordinatorOf(last.metadata.configuration).nonEmpty &&
      last.tableCommitCoordinatorClientOpt.isEmpty && !last.isCatalogOwned &&
      last.logSegment.deltas.lastOption.exists(_.getPath == commitFile(last.deltaLog, last.version))

  private def isOnOwnDisk(log: Path): Boolean = QuickLocalFileSystem.isLocal(log) && onOwnDisk.get(
    log,
    () =>
      OwnDisks(Files.getFileStore(LocalPath.of(log.toUri.getPath)).`type`.toLowerCase(Locale.ROOT))
  )

  private def isThere(file: FileStatus) = status(file.getPath).exists(now =>
    now.getLen == file.getLen && now.getModificationTime == file.getModificationTime
  )

  /** A snapshot with the commits that were made since, and the last checkpoint if that is later. */
  private def grown(
      last: Snapshot,
      table: Option[CatalogTable],
      now: Long
  ): Option[Snapshot] = {
    val log = last.deltaLog
    val commits = Iterator.iterate(last.version + 1)(_ + 1).map(commit(log, _)).take(MostAdded + 1)
      .takeWhile(_.nonEmpty).flatten.toSeq
    val appended = commits.foldLeft(last.logSegment)((segment, file) =>
      SnapshotManagement.appendCommitToLogSegment(segment, file, segment.version + 1)
    )
    val checkpoint = laterCheckpoint(last, appended)
    if (commits.isEmpty && checkpoint.isEmpty) Some(last)
    else Option.when(commits.size <= MostAdded)(
      checkpoint.fold(appended)(beginningWithFile(log, _, appended).getOrElse(
        log.getLogSegmentAfterCommit(None, table, last.checkpointProvider)
      ))
    ).flatMap { segment =>
      Checksums.read(log, segment).filter(isWhole).map(install(log, segment, _, now))
    }
  }

  private def isWhole(checksum: VersionChecksum) =
    checksum.metadata != null && checksum.protocol != null

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
      log: DeltaLog,
      checkpoint: LastCheckpointInfo,
      segment: LogSegment
  ): Option[LogSegment] = {
    import checkpoint.version
    for {
      file <- status(FileNames.checkpointFileSingular(log.logPath, version))
      if checkpoint.parts.isEmpty && checkpoint.v2Checkpoint.isEmpty
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
      checksum: VersionChecksum,
      asOf: Long
  ): Snapshot = log.withSnapshotLockInterruptibly {
    def reach(segment: LogSegment) = (segment.version, segment.checkpointProvider.version)
    val last = log.unsafeVolatileSnapshot
    if (Ordering[(Long, Long)].gteq(reach(last.logSegment), reach(segment))) last
    else NewestSnapshot.install(
      log,
      new Snapshot(log.logPath, segment.version, segment, log, Some(checksum)),
      asOf
    )
  }

  private def commitFile(log: DeltaLog, version: Long) =
    FileNames.unsafeDeltaFile(log.logPath, version)

  private def commit(log: DeltaLog, version: Long): Option[FileStatus] =
    status(commitFile(log, version))

  /** The status of a file on a local disk; none if it is not there. */
  private def status(file: Path): Option[FileStatus] =
    try {
      val found =
        Files.readAttributes(LocalPath.of(file.toUri.getPath), classOf[BasicFileAttributes])
      val modified = found.lastModifiedTime.toMillis
      Some(new FileStatus(found.size, found.isDirectory, 1, HadoopBlock, modified, file))
    } catch { case _: NoSuchFileException => None }

  private val HadoopBlock = 32L << 20
}
