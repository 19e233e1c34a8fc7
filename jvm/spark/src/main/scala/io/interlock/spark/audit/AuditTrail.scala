package io.interlock.spark.audit

import java.time.{Duration, Instant}
import java.util.Collections

import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaLog}

/** The records of a table's rejected commits, beside its log. */
object AuditTrail extends Logging {
  private val sweptOnce = Collections.newSetFromMap(
    CacheBuilder.newBuilder().maximumSize(10000).build[Path, java.lang.Boolean]().asMap
  )

  /** Writes a record; if that fails, there is a warning and no error. */
  def write(log: DeltaLog, metadata: Metadata, record: => ConflictRecord): Unit =
    try {
      folder(log).append(record)
      if (sweptOnce.add(log.logPath)) sweep(log, metadata)
    } catch {
      case NonFatal(error) =>
        logWarning(s"A rejected commit left no record in ${log.logPath}.", error)
    }

  /** Tries to delete records that are older than the table's log retention. */
  def sweep(log: DeltaLog, metadata: Metadata): Unit =
    try folder(log).sweep(retention(metadata), Instant.now)
    catch {
      case NonFatal(error) => logWarning(s"Old records stay in ${log.logPath}.", error)
    }

  private def retention(metadata: Metadata): Duration =
    Duration.ofMillis(DeltaConfigs.getMilliSeconds(
      DeltaConfigs.LOG_RETENTION.fromMetaData(metadata)
    ))

  def folder(log: DeltaLog): RecordFolder =
    new RecordFolder(log.logPath, log.newDeltaHadoopConf())
}
