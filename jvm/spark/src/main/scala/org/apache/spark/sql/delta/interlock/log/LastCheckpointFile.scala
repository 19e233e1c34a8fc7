package org.apache.spark.sql.delta.interlock.log

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.util.{Try, Using}

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, LastCheckpointInfo}

/** The `_last_checkpoint` of a log. */
private[log] object LastCheckpointFile {

  private val recent = CacheBuilder.newBuilder().maximumSize(10000)
    .expireAfterWrite(20, TimeUnit.MILLISECONDS).build[Path, LastCheckpointInfo]()

  /** What it said at most 20 ms ago; a file that was not there is looked for again. */
  def recently(log: DeltaLog): Option[LastCheckpointInfo] =
    Option(recent.getIfPresent(log.logPath)).orElse {
      val last = read(log)
      last.foreach(recent.put(log.logPath, _))
      last
    }

  /** What it says; none if it is not there or is just being replaced. */
  private def read(log: DeltaLog): Option[LastCheckpointInfo] = Try {
    val file = log.LAST_CHECKPOINT
    val text =
      if (isLocal(log)) Files.readString(LocalPath.of(file.toUri.getPath))
      else log.store.read(file, log.newDeltaHadoopConf()).mkString
    LastCheckpointInfo.deserializeFromJson(text, validate = false)
  }.toOption

  /** Names a checkpoint, unless another process has written one of a later version meanwhile. */
  def write(session: SparkSession, log: DeltaLog, written: LastCheckpointInfo): Unit =
    if (!read(log).map(_.version).exists(last => last > written.version && exists(log, last))) {
      val hasChecksum = LastCheckpointInfo.checksumEnabled(session)
      if (isLocal(log)) writeLocally(session, log, written, hasChecksum)
      else log.writeLastCheckpointFile(log, written, hasChecksum)
    }

  private def isLocal(log: DeltaLog): Boolean = QuickLocalFileSystem.isLocal(log.logPath)

  /** Whether a log that was put back still has the checkpoint. */
  private def exists(log: DeltaLog, version: Long): Boolean = {
    val file = FileNames.checkpointFileSingular(log.logPath, version)
    file.getFileSystem(log.newDeltaHadoopConf()).exists(file)
  }

  /** On a local disk, without the processes that Hadoop starts for a file. */
  private def writeLocally(
      session: SparkSession,
      log: DeltaLog,
      last: LastCheckpointInfo,
      hasChecksum: Boolean
  ): Unit = {
    val isShort =
      session.sessionState.conf.getConf(DeltaSQLConf.SUPPRESS_OPTIONAL_LAST_CHECKPOINT_FIELDS)
    val json = LastCheckpointInfo.serializeToJson(last, hasChecksum, isShort)
    val file = log.LAST_CHECKPOINT
    val conf = log.newDeltaHadoopConf()
    QuickLocalFileSystem.use(conf)
    val fs = file.getFileSystem(conf)
    val written = new Path(file.getParent, s".${file.getName}.${UUID.randomUUID()}.tmp")
    Using.resource(fs.create(written))(_.write(s"$json\n".getBytes(UTF_8)))
    val _ = fs.rename(written, file)
  }
}
