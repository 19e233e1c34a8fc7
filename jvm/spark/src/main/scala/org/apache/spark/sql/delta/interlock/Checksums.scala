package org.apache.spark.sql.delta.interlock

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path => LocalPath, Paths, StandardCopyOption}
import java.util.{Collections, UUID, WeakHashMap}

import io.interlock.coordinator.CommitQueue
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.{FileNames, JsonUtils}

/** The `.crc` beside each commit, with no Spark job and no process of its own.
  *
  * Each is derived from the one before it, which is remembered: under contention it is not on disk
  * yet. On a local disk it is written by the JVM alone, where Hadoop starts processes.
  */
private[interlock] object Checksums extends PostCommitHook {

  /** The last checksum of a table, on its way as its commit is. */
  final private case class Last(version: Long, generation: Option[Long], checksum: VersionChecksum)

  private val last = Collections.synchronizedMap(new WeakHashMap[CommitQueue, Last])

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
    derived.foreach(checksum => last.put(queue, Last(version, generation, checksum)))
    derived
  }

  override val name: String = "Interlock checksum"

  override def run(session: SparkSession, committed: CommittedTransaction): Unit =
    if (committed.postCommitSnapshot.version == committed.committedVersion)
      new Writer(session, committed.deltaLog).write(committed.txnId, committed.postCommitSnapshot)

  final private class Writer(override val spark: SparkSession, override val deltaLog: DeltaLog)
      extends RecordChecksum {

    def write(txnId: String, snapshot: Snapshot): Unit = writeChecksumFile(txnId, snapshot)

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
