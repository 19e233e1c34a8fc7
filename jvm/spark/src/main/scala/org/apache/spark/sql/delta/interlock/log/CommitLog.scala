package org.apache.spark.sql.delta.interlock.log

import java.io.FileNotFoundException

import io.interlock.spark.properties.TablePolicy
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.util.DeltaCommitFileProvider
import org.apache.spark.sql.delta.{
  DeltaConfigs,
  DeltaHistoryManager,
  InCommitTimestampUtils,
  Snapshot
}

/** A version's commit. */
final case class Commit(
    version: Long,
    info: Option[CommitInfo],
    metadata: Option[Metadata],
    files: Seq[FileAction],
    numbered: Seq[SetTransaction] = Nil
)

/** The commits of a table up to a snapshot. Each is read when it is asked for. */
final class CommitLog(snapshot: Snapshot) {
  private val log = snapshot.deltaLog
  private val conf = log.newDeltaHadoopConf()
  private val provider = DeltaCommitFileProvider(snapshot)

  /** None where the log has it no more. */
  def read(version: Long): Option[Commit] =
    ofLines(version)(commit(version, _))

  /** The same, with none of its files. */
  def readWithoutFiles(version: Long): Option[Commit] = ofLines(version)(lines =>
    commit(version, lines.filterNot(line => FileActions.exists(line.startsWith)))
  )

  /** The commitInfo of a version; none if the log no longer has the version, or it has no
    * commitInfo.
    */
  def info(version: Long): Option[CommitInfo] =
    ofLines(version) { lines =>
      lines.find(_.startsWith("{\"commitInfo\"")).map(Action.fromJson).collect {
        case info: CommitInfo => info
      }
    }.flatten

  private val FileActions = Seq("{\"add\"", "{\"remove\"", "{\"cdc\"")

  private def ofLines[A](version: Long)(read: Iterator[String] => A): Option[A] =
    if (version < 0 || version > snapshot.version) None
    else
      try {
        val lines = log.store.readAsIterator(provider.deltaFile(version), conf)
        try Some(read(lines))
        finally lines.close()
      } catch { case _: FileNotFoundException => None }

  /** The versions that have a commitInfo, down to the oldest in the log. */
  def infosNewestFirst(): Iterator[(Long, CommitInfo)] =
    Iterator.iterate(snapshot.version)(_ - 1).takeWhile(_ >= oldest)
      .flatMap(version => info(version).map(version -> _))

  private lazy val oldest: Long =
    DeltaHistoryManager.getEarliestDeltaFile(log)

  /** The commits down to version 0, or to the oldest in the log. */
  def newestFirst(from: Long): Iterator[Commit] =
    Iterator.iterate(from)(_ - 1).map(read).takeWhile(_.nonEmpty).flatten

  /** The time of a version's commit by which time travel finds it, in milliseconds since 1970. */
  def timestamp(version: Long, info: Option[CommitInfo]): Option[Long] =
    if (version < firstWithTimestamp) modificationTimes.get(version)
    else info.flatMap(_.inCommitTimestamp)

  /** The table's policy after a version, as far as the log tells. */
  def policyAt(version: Long): Option[String] =
    Iterator.iterate(version)(_ - 1).takeWhile(_ >= 0).map(metadataIn).takeWhile(_.nonEmpty)
      .flatten.collectFirst { case Some(metadata) => TablePolicy.named(metadata.configuration) }
      .flatten

  /** None if the log no longer has the version. */
  private def metadataIn(version: Long): Option[Option[Metadata]] =
    log.readChecksum(version).flatMap(found => Option(found.metadata)).map(Option(_))
      .orElse(read(version).map(_.metadata))

  private def commit(version: Long, lines: Iterator[String]): Commit =
    lines.map(Action.fromJson).foldLeft(Commit(version, None, None, Vector.empty)) {
      case (commit, info: CommitInfo) => commit.copy(info = Some(info))
      case (commit, metadata: Metadata) => commit.copy(metadata = Some(metadata))
      case (commit, file @ (_: AddFile | _: RemoveFile)) =>
        commit.copy(files = commit.files :+ file.asInstanceOf[FileAction])
      case (commit, batch: SetTransaction) => commit.copy(numbered = commit.numbered :+ batch)
      case (commit, _) => commit
    }

  private lazy val firstWithTimestamp: Long =
    if (!DeltaConfigs.IN_COMMIT_TIMESTAMPS_ENABLED.fromMetaData(snapshot.metadata)) Long.MaxValue
    else
      InCommitTimestampUtils.getValidatedICTEnablementInfo(snapshot.metadata).fold(0L)(_.version)

  private lazy val modificationTimes: Map[Long, Long] =
    DeltaHistoryManager
      .getCommitsWithNonIctTimestamps(log.store, log.logPath, 0, Some(snapshot.version + 1), conf)
      .map(found => found.version -> found.timestamp)
      .toMap
}
