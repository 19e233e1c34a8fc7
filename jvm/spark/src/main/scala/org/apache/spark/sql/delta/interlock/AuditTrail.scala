package org.apache.spark.sql.delta.interlock

import java.time.{Duration, Instant}
import java.util.Collections

import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.spark.audit.ConflictRecord.Fact
import io.interlock.spark.audit.{ConflictRecord, RecordFolder}
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.actions.{CommitInfo, Metadata}
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaLog, Snapshot}

/** The audit records of a table: of rejected commits beside its log, of rebased ones in it. */
private[interlock] object AuditTrail extends Logging {
  private val sweptOnce = Collections.newSetFromMap(
    CacheBuilder.newBuilder().maximumSize(10000).build[Path, java.lang.Boolean]().asMap
  )

  /** Leaves a record; one that cannot be written is a warning and no error. */
  def write(log: DeltaLog, metadata: Metadata, record: => ConflictRecord): Unit =
    try {
      folder(log).append(record)
      if (sweptOnce.add(log.logPath)) sweep(log, metadata)
    } catch {
      case NonFatal(error) =>
        logWarning(s"A rejected commit left no record in ${log.logPath}.", error)
    }

  /** Deletes records that are older than the table keeps its log; best effort. */
  def sweep(log: DeltaLog, metadata: Metadata): Unit =
    try folder(log).sweep(retention(metadata), Instant.now)
    catch {
      case NonFatal(error) => logWarning(s"Old records stay in ${log.logPath}.", error)
    }

  def retention(metadata: Metadata): Duration =
    Duration.ofMillis(DeltaConfigs.getMilliSeconds(
      DeltaConfigs.LOG_RETENTION.fromMetaData(metadata)
    ))

  /** All records, newest first. Files and commits are read as the iterator advances. */
  def newestFirst(snapshot: Snapshot): Iterator[ConflictRecord] = {
    val rejected = folder(snapshot.deltaLog).newestFirst().buffered
    val committed = committedNewestFirst(snapshot).buffered
    def isNewer(record: ConflictRecord) =
      committed.headOption.forall { case (_, _, millis) => record.millis >= millis }
    Iterator.unfold(()) { _ =>
      if (rejected.headOption.exists(isNewer)) Some(Some(rejected.next()) -> (()))
      else
        committed.nextOption().map { case (version, info, millis) =>
          rebased(version, info, millis) -> (())
        }
    }.flatten
  }

  /** The record of a rejected attempt. */
  def rejectedBy(snapshot: Snapshot, attempt: String): Option[ConflictRecord] =
    folder(snapshot.deltaLog).newestFirst().find(_.text(Fact.Attempt).contains(attempt))

  /** The version that an attempt made, and its record where it passed others. */
  def committedBy(snapshot: Snapshot, attempt: String): Option[(Long, Option[ConflictRecord])] = {
    committedNewestFirst(snapshot).collectFirst {
      case (version, info, millis) if info.txnId.contains(attempt) =>
        version -> rebased(version, info, millis)
    }
  }

  /** Versions, what each says of itself, and when it was committed. */
  private def committedNewestFirst(snapshot: Snapshot): Iterator[(Long, CommitInfo, Long)] = {
    val commits = new CommitLog(snapshot)
    commits.infosNewestFirst().map { case (version, info) =>
      (version, info, commits.timestamp(version, Some(info)).getOrElse(0L))
    }
  }

  private def rebased(version: Long, info: CommitInfo, millis: Long): Option[ConflictRecord] = {
    val tags = info.tags.getOrElse(Map.empty)
    tags.get(CommitTags.RebasedOver).map { versions =>
      val ofTags = Seq(
        Fact.LaterClass -> CommitTags.Class,
        Fact.Policy -> CommitTags.Policy,
        Fact.Rule -> CommitTags.Rule,
        Fact.Verdict -> CommitTags.Verdicts,
        Fact.Scope -> CommitTags.Scope,
        Fact.User -> CommitTags.User,
        Fact.Millis -> CommitTags.Millis,
        Fact.Bytes -> CommitTags.BytesSaved
      ).flatMap { case (fact, tag) => tags.get(tag).map(fact -> _) }
      ConflictRecord(
        ofTags.toMap[String, Any] ++ info.txnId.map(Fact.Attempt -> _) ++
          info.readVersion.map(Fact.ReadVersion -> _) ++
          Map[String, Any](
            Fact.Time -> Instant.ofEpochMilli(millis).toString,
            Fact.Outcome -> ConflictRecord.Rebased,
            Fact.LaterOperation -> info.operation,
            Fact.Version -> version,
            Fact.Winners -> versions.split(',').toSeq
          )
      )
    }
  }

  private def folder(log: DeltaLog) = new RecordFolder(log.logPath, log.newDeltaHadoopConf())
}
