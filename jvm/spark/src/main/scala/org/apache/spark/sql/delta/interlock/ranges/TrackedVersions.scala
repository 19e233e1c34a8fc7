package org.apache.spark.sql.delta.interlock.ranges

import org.apache.spark.sql.delta.DeltaCommitTag.{
  PreservedRowTrackingTag,
  getTagValueFromCommitInfo
}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.interlock.log.{CommitLog, Definition}
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaOperations, RowTracking, Snapshot}
import org.apache.spark.util.ThreadUtils

/** The reason why rows of a table do not have the version in which they last changed.
  *
  * @param first
  *   the first version after which all rows have it
  * @param why
  *   a sentence
  */
final private[interlock] case class Untracked(first: Long, why: String)

/** Finds where ranges of versions may begin: row tracking must be on in each version of a range, and
  * each commit in it must leave the rows that it copies their versions.
  *
  * @param end
  *   the last version of the ranges, in which row tracking is on
  * @param at
  *   an earlier version of the table
  */
final private[interlock] class TrackedVersions(end: Snapshot, at: Long => Snapshot) {
  import TrackedVersions._

  private val log = new CommitLog(end)

  /** None if a range may begin after `after`. */
  def untrackedSince(after: Long): Option[Untracked] = {
    val commits = steps(after + 1 to end.version)
    if (!commits.exists(step => step.definesTable || step.losesVersions)) None
    else {
      val begin = at(after)
      val start = Walked(begin.protocol, begin.metadata, None)
      commits.foldLeft(start.copy(untracked = start.ifOff(after)))(walk).untracked
    }
  }

  private def walk(before: Walked, step: Step): Walked = {
    val after = Walked(
      step.protocol.getOrElse(before.protocol),
      step.metadata.getOrElse(before.metadata),
      if (step.losesVersions) Some(Untracked(step.version, lost(step.version)))
      else before.untracked
    )
    after.copy(untracked = after.ifOff(step.version).orElse(after.untracked))
  }

  private def steps(versions: Seq[Long]): Seq[Step] =
    if (versions.size <= ReadInTurn) versions.map(step)
    else ThreadUtils.parmap(versions, "interlock-read-range", Readers)(step)

  /** A version that is gone from the log counts as having lost row versions. */
  private def step(version: Long): Step =
    log.definition(version).fold(Step(version, None, None, losesVersions = true)) { found =>
      Step(version, found.protocol, found.metadata, mayLose(found) && losesVersions(version))
    }

  /** Whether a commit may have lost row versions. Delta marks a commit that copied rows without
    * their versions. RESTORE does not copy rows, but it may bring back files that were written
    * without row tracking.
    */
  private def mayLose(commit: Definition): Boolean =
    isRestore(commit.info) ||
      getTagValueFromCommitInfo(commit.info, PreservedRowTrackingTag.key).contains("false")

  private def isRestore(info: Option[CommitInfo]): Boolean =
    info.exists(_.operation == DeltaOperations.OP_RESTORE)

  /** Whether rows that were there before are in files whose rows all carry this version. */
  private def losesVersions(version: Long): Boolean = log.read(version).forall { commit =>
    val numbersAnew = commit.files.exists {
      case add: AddFile => add.defaultRowCommitVersion.forall(_ >= version)
      case _ => false
    }
    numbersAnew && (isRestore(commit.info) || commit.files.exists(_.isInstanceOf[RemoveFile]))
  }
}

private[interlock] object TrackedVersions {
  private val ReadInTurn = 10
  private val Readers = 8

  def isTracked(protocol: Protocol, metadata: Metadata): Boolean =
    DeltaConfigs.ROW_TRACKING_ENABLED.fromMetaData(metadata) && RowTracking.isSupported(protocol)

  /** A version within the range.
    *
    * @param losesVersions
    *   whether it gave its own version to rows that it did not change
    */
  final private case class Step(
      version: Long,
      protocol: Option[Protocol],
      metadata: Option[Metadata],
      losesVersions: Boolean
  ) {
    def definesTable: Boolean = protocol.nonEmpty || metadata.nonEmpty
  }

  final private case class Walked(
      protocol: Protocol,
      metadata: Metadata,
      untracked: Option[Untracked]
  ) {

    /** @param version
      *   the version that has this protocol and metadata
      */
    def ifOff(version: Long): Option[Untracked] =
      Option.when(!isTracked(protocol, metadata))(Untracked(version + 1, off(version + 1)))
  }

  private def off(first: Long): String =
    s"Row tracking was off before version $first, and rows that were written without it do not " +
      "carry the version in which they last changed."

  private def lost(version: Long): String =
    s"Version $version gave its own version to rows that it did not change, since they were " +
      "written while row tracking was off."
}
