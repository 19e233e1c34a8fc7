package io.interlock.spark.history

import java.sql.Timestamp

import io.interlock.rules.OperationClass
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.properties.TablePolicy
import org.apache.spark.sql.delta.actions.{CommitInfo, FileAction}
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.delta.{DeltaOperations, Snapshot}

/** The versions of a table, newest first, from its log alone: no data file is opened. Commits are
  * read as the iterators advance; versions whose commit is gone from the log are left out.
  *
  * @param inScope
  *   whether a file of a commit is asked for; a version that names none is left out
  */
final private[spark] class VersionHistory(
    snapshot: Snapshot,
    inScope: Option[(FileAction, Option[CommitInfo]) => Boolean] = None
) {
  private val log = new CommitLog(snapshot)
  private val states = new VersionStates(log, changes())

  def records(): Iterator[VersionRecord] = {
    val now = TablePolicy.named(snapshot.metadata.configuration)
    changes().scanLeft(Walked(None, None, Some(now)))(advance).flatMap { walked =>
      walked.change.filter(inScope.isEmpty || _.files.touches).map(record(_, walked.isForeign))
    }
  }

  /** Versions that logically added or removed at least one row, and when they were committed. */
  def timeVersions(): Iterator[(Long, Timestamp)] =
    for {
      change <- changes() if states.changesData(change)
      millis <- log.timestamp(change.version, change.info)
    } yield change.version -> new Timestamp(millis)

  private def changes(): Iterator[VersionChange] =
    new VersionChanges(log.newestFirst(snapshot.version), inScope.getOrElse((_, _) => true))

  /** @param policyBefore
    *   the table's policy before the version, unless that had to be looked up for nothing
    */
  private case class Walked(
      change: Option[VersionChange],
      isForeign: Option[Boolean],
      policyBefore: Option[Option[String]]
  )

  private def advance(newer: Walked, change: VersionChange): Walked = {
    val isOurs = CommitTags.areOurs(tags(change))
    val before = newer.policyBefore.filter(_ => change.metadata.isEmpty)
      .orElse(Option.when(!isOurs)(log.policyAt(change.version - 1)))
    val isForeign = if (isOurs) Some(false) else before.flatten.map(_ => true)
    Walked(Some(change), isForeign, before)
  }

  private def tags(change: VersionChange): Map[String, String] =
    change.info.flatMap(_.tags).getOrElse(Map.empty)

  private def record(change: VersionChange, isForeign: Option[Boolean]): VersionRecord = {
    val tags = this.tags(change)
    val timestamp = log.timestamp(change.version, change.info).map(new Timestamp(_))
    val changesData = states.changesData(change)
    def counted(rows: Option[Long]) =
      if (!changesData) Some(0L) else rows.filterNot(_ => states.rowsMovedSinceRestored(change))
    val copied = copiedUnder(change)
    val operationClass =
      tags.get(CommitTags.Class).orElse(copied.map(_ => OperationClass.Overwrite.name))
    val winners = operationClass.map(_ => CommitTags.winners(tags))
    VersionRecord(
      version = change.version,
      timeVersion = timestamp.filter(_ => changesData),
      timestamp = timestamp,
      operationClass = operationClass,
      policy = tags.get(CommitTags.Policy).orElse(copied),
      operation = change.info.flatMap(Operations.name),
      operationParameters = change.info.map(info =>
        CommitInfo.getLegacyPostDeserializationOperationParameters(info.operationParameters)
      ),
      winners = winners.map(_.map(_.version)),
      rules = winners.map(_.map(_.rule)),
      verdicts = winners.map(_.map(_.verdict)),
      foreign = isForeign,
      rowsIn = counted(change.files.rowsIn),
      rowsOut = counted(change.files.rowsOut),
      filesAdded = change.files.filesAdded,
      filesRemoved = change.files.filesRemoved,
      user = change.info.flatMap(info => info.userName.orElse(info.userId))
        .orElse(tags.get(CommitTags.User)),
      txnId = change.info.flatMap(_.txnId),
      readVersion = change.info.flatMap(_.readVersion),
      block = tags.get(CommitTags.BlockId)
    )
  }

  /** The policy of the table where the version is a RESTORE or CLONE of ours, whose commit Delta writes
    * without our tags.
    */
  private def copiedUnder(change: VersionChange): Option[String] = change.info
    .filter(info => CommitTags.isOurs(info) && VersionHistory.copies(info.operation))
    .flatMap(_ => log.policyAt(change.version))
}

private object VersionHistory {
  private val copies = Set(DeltaOperations.OP_RESTORE, DeltaOperations.OP_CLONE)
}
