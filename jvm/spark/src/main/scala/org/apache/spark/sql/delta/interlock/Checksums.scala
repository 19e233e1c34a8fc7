package org.apache.spark.sql.delta.interlock

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath, Paths, StandardCopyOption}
import java.util.{Collections, UUID, WeakHashMap}

import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.CommitQueue
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.{FileNames, JsonUtils}

/** The `.crc` of each commit, with no Spark job and no process of its own.
  *
  * Each is derived from the one before it, which is remembered: under contention it is not on disk
  * yet. What this process has not derived itself is derived from and answered from only where the log
  * proves it. On a local disk it is written by the JVM alone, where Hadoop starts processes.
  */
private[interlock] object Checksums extends PostCommitHook with Logging {

  /** The last checksum of a table, on its way as its commit is. */
  final private case class Last(version: Long, generation: Option[Long], checksum: VersionChecksum)

  private val last = Collections.synchronizedMap(new WeakHashMap[CommitQueue, Last])

  /** Those of the last commits that were made, or proved, here: by the files of the commits. */
  private val proved =
    CacheBuilder.newBuilder().maximumSize(500).build[(String, Long, Long), VersionChecksum]()

  private def key(file: FileStatus) = (file.getPath.toString, file.getLen, file.getModificationTime)

  /** @param compute
    *   from the checksum of the version before, where it is known here
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

  private def known(file: FileStatus): Option[VersionChecksum] =
    Option(proved.getIfPresent(key(file)))

  /** The checksum of a snapshot, if the log proves it. One that was made here may be missing in the
    * snapshot: Delta may have listed the log before it was there.
    */
  def of(snapshot: Snapshot): Option[VersionChecksum] = {
    val file = snapshot.logSegment.deltas.lastOption
    file.flatMap(known).orElse(snapshot.checksumOpt.filter(isProved(snapshot, _)).map { checksum =>
      file.foreach(of => proved.put(key(of), checksum))
      checksum
    })
  }

  /** The checksum of the last version of a segment, as it is on disk. */
  def read(log: DeltaLog, segment: LogSegment): Option[VersionChecksum] =
    log.readChecksum(segment.version).flatMap(found =>
      of(new Snapshot(log.logPath, segment.version, segment, log, Some(found)))
    )

  private def isProved(snapshot: Snapshot, checksum: VersionChecksum): Boolean = {
    val isProved =
      try new NewestVersion(snapshot, known).proves(checksum)
      catch {
        case NonFatal(error) =>
          logWarning(s"The log of ${snapshot.path} cannot be read.", error)
          false
      }
    if (!isProved) logWarning(
      s"The checksum of version ${snapshot.version} of ${snapshot.path} is not that of its commit, " +
        "or wrong: it is not used, and the next commit replays the log."
    )
    isProved
  }

  /** Remembers and writes the checksum of a commit that was made. */
  def keep(
      session: SparkSession,
      log: DeltaLog,
      file: FileStatus,
      checksum: VersionChecksum
  ): Unit = {
    proved.put(key(file), checksum)
    try new Writer(session, log).write(FileNames.deltaVersion(file), checksum)
    catch { case NonFatal(error) => logWarning(s"No checksum beside ${file.getPath}.", error) }
  }

  override val name: String = "Interlock checksum"

  /** Of a commit whose checksum could not be derived. */
  override def run(session: SparkSession, made: CommittedTransaction): Unit =
    if (made.postCommitSnapshot.version == made.committedVersion)
      new Writer(session, made.deltaLog).write(
        made.txnId,
        ChecksummedSnapshot.of(made.postCommitSnapshot)
      )

  final private class Writer(override val spark: SparkSession, override val deltaLog: DeltaLog)
      extends RecordChecksum {

    def write(txnId: String, snapshot: Snapshot): Unit = writeChecksumFile(txnId, snapshot)

    def write(version: Long, checksum: VersionChecksum): Unit =
      if (spark.conf.get(DeltaSQLConf.DELTA_WRITE_CHECKSUM_ENABLED))
        writeChecksumFile(version, checksum)

    override protected def writeChecksumFile(version: Long, checksum: VersionChecksum): Unit = {
      val file = FileNames.checksumFile(deltaLog.logPath, version)
      if (file.toUri.getScheme != "file") super.writeChecksumFile(version, checksum)
      else {
        val content =
          if (spark.conf.get(DeltaSQLConf.DELTA_CHECKSUM_HISTOGRAM_FIELD_FOLLOWS_PROTOCOL)) checksum
          else checksum.toLegacy
        put(Paths.get(file.toUri), JsonUtils.toJson(content) + "\n")
      }
    }

    private def put(file: LocalPath, text: String): Unit = {
      val written = file.resolveSibling(s".${file.getFileName}.${UUID.randomUUID()}.tmp")
      Files.write(written, text.getBytes(UTF_8))
      val _ = Files.move(written, file, StandardCopyOption.ATOMIC_MOVE)
    }
  }
}
