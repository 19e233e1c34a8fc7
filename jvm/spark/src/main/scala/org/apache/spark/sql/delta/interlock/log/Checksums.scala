package org.apache.spark.sql.delta.interlock.log

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath, StandardCopyOption}
import java.util.{Collections, UUID, WeakHashMap}

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.{CommitBody, CommitQueue, QuickLocalFileSystem}
import io.interlock.spark.commits.CommitTags
import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, CommitInfo}
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.{FileNames, JsonUtils}

/** Derives and writes the `.crc` of each commit without a Spark job and without starting a process.
  *
  * Each checksum is derived from the one before it, which is kept in memory, because under
  * contention it is not on disk yet. A checksum that this process did not derive is used only if
  * the log proves it. On a local disk the file is written without Hadoop, which would start
  * processes; on a storage that shows a file only when it is complete, such as S3, without the
  * rename, which would copy it.
  */
private[interlock] object Checksums extends Logging {

  /** The last checksum of a table, whose commit may still be on its way. */
  final private case class Last(version: Long, generation: Option[Long], checksum: VersionChecksum)

  private val last = Collections.synchronizedMap(new WeakHashMap[CommitQueue, Last])

  private type Key = (String, Long, Long, Option[String])

  /** The checksums of the last commits that this process made or proved, by the commits' files.
    * One may have megabytes: the schema, and up to 50 files with their statistics.
    */
  private val proved =
    CacheBuilder.newBuilder().softValues().maximumSize(500).build[Key, VersionChecksum]()

  /** The maximum number of commits that a checksum is carried over, and of bytes in each. */
  private val MostCarried = 10
  private val MostBytes = 1L << 20

  private def key(file: FileStatus): Key = (
    file.getPath.toString,
    file.getLen,
    file.getModificationTime,
    etag(file)
  )

  private def etag(file: FileStatus) = file match {
    case stored: EtagSource => Option(stored.getEtag)
    case _ => None
  }

  /** @param compute
    *   computes the checksum from that of the version before, if this process knows it
    */
  def derive(queue: CommitQueue, version: Long, generation: Option[Long])(
      compute: Option[VersionChecksum] => Option[VersionChecksum]
  ): Option[VersionChecksum] = {
    val previous = Option(last.get(queue)).collect {
      case Last(before, `generation`, checksum) if before == version - 1 => checksum
    }
    val derived = compute(previous)
    derived match {
      case Some(checksum) => last.put(queue, Last(version, generation, checksum))
      case None => last.remove(queue)
    }
    derived
  }

  /** Forgets the checksum of a commit that was not made. The queue's generation does not tell: it
    * stays the same if the commit was not handed in.
    */
  def forget(queue: CommitQueue, checksum: VersionChecksum): Unit =
    last.computeIfPresent(
      queue,
      (_, known) => if (known.checksum eq checksum) null else known
    ): Unit

  private def known(file: FileStatus): Option[VersionChecksum] =
    Option(proved.getIfPresent(key(file)))

  /** The checksum of a snapshot, if the log proves it. A checksum that this process made may be
    * missing in the snapshot, if Delta listed the log before the file was there.
    */
  def of(snapshot: Snapshot): Option[VersionChecksum] =
    of(snapshot.deltaLog, snapshot.logSegment, snapshot.checksumOpt, MostCarried)

  /** The checksum of the last version of a segment, if the log proves it. */
  def read(log: DeltaLog, segment: LogSegment): Option[VersionChecksum] =
    read(log, segment, MostCarried)

  private def read(log: DeltaLog, segment: LogSegment, most: Int): Option[VersionChecksum] =
    of(log, segment, log.readChecksum(segment.version), most)

  private def of(
      log: DeltaLog,
      segment: LogSegment,
      onDisk: => Option[VersionChecksum],
      most: Int
  ): Option[VersionChecksum] = {
    val file = segment.deltas.lastOption.filter(_.getLen > 0)
    def readNow = onDisk.filter(isProved(log, segment, _)).map { checksum =>
      file.foreach(remember(_, checksum))
      checksum
    }
    file.flatMap(known).orElse(readNow).orElse(
      file.filter(_.getLen <= MostBytes && most > 0).flatMap(carried(log, segment, _, most - 1))
    )
  }

  /** The checksum of an earlier version, carried over the commits since, because a commit is
    * visible before its checksum is written. It is not carried over commits of other writers, who
    * may add a file again that the table already has.
    */
  private def carried(
      log: DeltaLog,
      segment: LogSegment,
      file: FileStatus,
      most: Int
  ): Option[VersionChecksum] = {
    def areOurs(lines: Seq[String]) = lines.headOption.map(Action.fromJson).exists {
      case info: CommitInfo => CommitTags.isOurs(info)
      case _ => false
    }
    def before =
      read(log, segment.copy(version = segment.version - 1, deltas = segment.deltas.init), most)
    try
      for {
        lines <- Some(log.store.read(file, log.newDeltaHadoopConf())).filter(areOurs)
        checksum <- before
        made = CommitReader.summary(CommitBody(segment.version, file, lines))
        behind <- over(log, checksum, made)
      } yield behind
    catch {
      case NonFatal(error) =>
        logWarning(s"Version ${segment.version} of ${log.logPath} cannot be read.", error)
        None
    }
  }

  private def over(
      log: DeltaLog,
      before: VersionChecksum,
      made: WinningCommitSummary
  ): Option[VersionChecksum] = {
    val session = SparkSession.active
    new Writer(session, log).incrementallyDeriveChecksum(
      session,
      log,
      made.commitVersion,
      made.actions,
      metadataOpt = None,
      protocolOpt = None,
      made.commitInfo.get.operation,
      made.commitInfo.get.txnId,
      Right(before),
      mustIncludeFileSizeHistogram = false,
      // Delta collects the files again if the schema may have changed.
      includeAddFilesInCrc = before.allFiles.nonEmpty && made.metadataUpdates.isEmpty
    ).toOption
  }

  /** The checksum of a commit, from that of the version before it.
    *
    * @param withFiles
    *   whether it lists the files of the table
    */
  def over(
      session: SparkSession,
      log: DeltaLog,
      before: VersionChecksum,
      version: Long,
      info: CurrentTransactionInfo,
      withFiles: Boolean
  ): Option[VersionChecksum] = new Writer(session, log).incrementallyDeriveChecksum(
    session,
    log,
    version,
    info.finalActionsToCommit,
    Some(info.metadata),
    Some(info.protocol),
    info.op.name,
    Some(info.txnId),
    Right(before),
    mustIncludeFileSizeHistogram =
      session.conf.get(DeltaSQLConf.DELTA_FILE_SIZE_HISTOGRAM_ENABLED),
    includeAddFilesInCrc = withFiles
  ).toOption

  private def isProved(log: DeltaLog, segment: LogSegment, checksum: VersionChecksum): Boolean = {
    val isProved =
      try {
        val claimed = new Snapshot(log.logPath, segment.version, segment, log, Some(checksum))
        new NewestVersion(claimed, known).proves(checksum)
      } catch {
        case NonFatal(error) =>
          logWarning(s"The log at ${log.logPath} cannot be read.", error)
          false
      }
    if (!isProved) logWarning(
      s"The checksum of version ${segment.version} of ${log.logPath} is not that of its commit, " +
        "or wrong: it is not used."
    )
    isProved
  }

  /** The `.crc` of a commit that is about to be made. */
  trait Prepared {

    /** Writes the file when it is first called. It takes little time after the commit, since a
      * reader who sees the commit without its checksum replays the log.
      */
    def write(): Unit

    /** To be called if the commit is not made. */
    def discard(): Unit
  }

  object NoChecksum extends Prepared {
    override def write(): Unit = ()
    override def discard(): Unit = ()
  }

  def prepare(
      session: SparkSession,
      log: DeltaLog,
      version: Long,
      checksum: VersionChecksum
  ): Prepared = {
    val prepared = Try(new Writer(session, log).prepared(version, checksum))
    new Prepared {
      private lazy val written = prepared.flatMap(file => Try(file.write())).failed.foreach(
        logWarning(s"No checksum of version $version of ${log.logPath}.", _)
      )
      override def write(): Unit = written
      override def discard(): Unit = prepared.foreach(file => Try(file.discard()))
    }
  }

  /** Remembers the checksum of a commit that was made. */
  def remember(file: FileStatus, checksum: VersionChecksum): Unit = proved.put(key(file), checksum)

  /** Writes the checksum of a version that has none. */
  def write(session: SparkSession, log: DeltaLog, txnId: String, of: Snapshot): Unit =
    new Writer(session, log).write(txnId, of)

  final private class Writer(override val spark: SparkSession, override val deltaLog: DeltaLog)
      extends RecordChecksum {

    def write(txnId: String, snapshot: Snapshot): Unit = writeChecksumFile(txnId, snapshot)

    override protected def writeChecksumFile(version: Long, checksum: VersionChecksum): Unit =
      prepared(version, checksum).write()

    def prepared(version: Long, checksum: VersionChecksum): Prepared = {
      val file = FileNames.checksumFile(deltaLog.logPath, version)
      lazy val conf = deltaLog.newDeltaHadoopConf()
      lazy val text = {
        val content =
          if (spark.conf.get(DeltaSQLConf.DELTA_CHECKSUM_HISTOGRAM_FIELD_FOLLOWS_PROTOCOL))
            checksum
          else checksum.toLegacy
        JsonUtils.toJson(content) + "\n"
      }
      if (!spark.conf.get(DeltaSQLConf.DELTA_WRITE_CHECKSUM_ENABLED)) NoChecksum
      else if (QuickLocalFileSystem.isLocal(file)) {
        val local = LocalPath.of(file.toUri.getPath)
        Try(staged(local, text)).getOrElse(whenMade(staged(local, text).write()))
      } else if (deltaLog.store.isPartialWriteVisible(file, conf))
        whenMade(super.writeChecksumFile(version, checksum))
      else {
        val content = text
        whenMade(put(file, file.getFileSystem(conf), content))
      }
    }

    private def whenMade(work: => Unit) = new Prepared {
      override def write(): Unit = work
      override def discard(): Unit = ()
    }

    private def staged(file: LocalPath, text: String) = {
      val written = file.resolveSibling(s".${file.getFileName}.${UUID.randomUUID()}.tmp")
      try {
        Files.write(written, text.getBytes(UTF_8))
        QuickLocalFileSystem.permit(written, deltaLog.newDeltaHadoopConf())
      } catch {
        case failed: Throwable =>
          Try(Files.deleteIfExists(written)): Unit
          throw failed
      }
      new Prepared {
        override def write(): Unit = {
          val _ = Files.move(written, file, StandardCopyOption.ATOMIC_MOVE)
        }
        override def discard(): Unit = {
          val _ = Files.deleteIfExists(written)
        }
      }
    }

    private def put(file: Path, fs: FileSystem, text: String): Unit = {
      val out = fs.createFile(file).overwrite(true).recursive()
        .opt("fs.s3a.create.performance", true) // does not look for a folder in its place
        .build()
      out.write(text.getBytes(UTF_8))
      out.close()
    }
  }
}
