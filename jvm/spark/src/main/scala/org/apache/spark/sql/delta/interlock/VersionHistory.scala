package org.apache.spark.sql.delta.interlock

import java.sql.Timestamp

import io.interlock.rules.ChangedScope.Partition
import io.interlock.spark.TableProperties
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.CommitInfo

/** The versions of a table, newest first, from its log alone: no data file is opened. Commits are
  * read as the iterators advance; versions whose commit is gone from the log are left out.
  *
  * @param snapshot
  *   the table as it is now
  * @param inScope
  *   whether a partition is asked for; a version that names no file of one is left out
  */
final private[interlock] class VersionHistory(
    snapshot: Snapshot,
    inScope: Option[Partition => Boolean] = None
) {
  private val log = new CommitLog(snapshot)
  private val states = new VersionStates(log, changes())

  def records(): Iterator[VersionRecord] =
    changes().scanLeft(Walked(None, TableProperties.named(snapshot.metadata.configuration), true))(
      advance
    ).drop(1).filter(_.isAsked).flatMap(_.record)

  /** Versions that logically added or removed at least one row, and when they were committed. */
  def timeVersions(): Iterator[(Long, Timestamp)] =
    for {
      change <- changes() if states.changesData(change)
      millis <- log.timestamp(change.version, change.info)
    } yield change.version -> new Timestamp(millis)

  private def changes(): Iterator[VersionChange] =
    new VersionChanges(log.newestFirst(snapshot.version), inScope.getOrElse(_ => true))

  /** @param policy
    *   that of the table after the version, where `isPolicyKnown`
    */
  private case class Walked(
      record: Option[VersionRecord],
      policy: Option[String],
      isPolicyKnown: Boolean,
      isAsked: Boolean = true
  )

  private def advance(newer: Walked, change: VersionChange): Walked = {
    val tags = change.info.flatMap(_.tags).getOrElse(Map.empty)
    val isOurs = CommitTags.areOurs(tags)
    val isKnown = newer.isPolicyKnown && change.metadata.isEmpty
    val before =
      if (isKnown) newer.policy
      else if (isOurs) None
      else log.policyAt(change.version - 1)
    val isForeign = if (isOurs) Some(false) else before.map(_ => true)
    Walked(
      Some(record(change, tags, isForeign)),
      before,
      isPolicyKnown = isKnown || !isOurs,
      isAsked = inScope.isEmpty || change.files.touches
    )
  }

  private def record(
      change: VersionChange,
      tags: Map[String, String],
      isForeign: Option[Boolean]
  ): VersionRecord = {
    val timestamp = log.timestamp(change.version, change.info).map(new Timestamp(_))
    val changesData = states.changesData(change)
    def counted(rows: Option[Long]) =
      if (!changesData) Some(0L) else rows.filterNot(_ => states.rowsMovedSinceRestored(change))
    VersionRecord(
      version = change.version,
      timeVersion = timestamp.filter(_ => changesData),
      timestamp = timestamp,
      operationClass = tags.get(CommitTags.Class),
      policy = tags.get(CommitTags.Policy),
      operation = change.info.flatMap(info => Option(info.operation)),
      operationParameters = change.info.map(info =>
        CommitInfo.getLegacyPostDeserializationOperationParameters(info.operationParameters)
      ),
      rebasedOver = tags.get(CommitTags.Class).map(_ =>
        tags.get(CommitTags.RebasedOver).toSeq.flatMap(_.split(',')).map(_.toLong)
      ),
      rule = tags.get(CommitTags.Rule),
      foreign = isForeign,
      rowsIn = counted(change.files.rowsIn),
      rowsOut = counted(change.files.rowsOut),
      filesAdded = change.files.filesAdded,
      filesRemoved = change.files.filesRemoved,
      user = change.info.flatMap(info => info.userName.orElse(info.userId)),
      txnId = change.info.flatMap(_.txnId)
    )
  }
}
