package org.apache.spark.sql.delta.interlock.ranges

import org.apache.spark.sql.delta.DeltaCommitTag.{
  PreservedRowTrackingTag,
  getTagValueFromCommitInfo
}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.interlock.log.{Commit, CommitLog}
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaOperations, RowTracking, Snapshot}
import org.apache.spark.util.ThreadUtils

/** The reason why rows of a table do not have the version in which they last changed.
  *
  * @param first
  *   the first version after which all rows have it
  */
final private[interlock] case class Untracked(first: Long, why: String)

/** Finds where ranges of versions may begin: row tracking must be on in each version of a range, and
  * each commit in it must leave the rows that it copies their versions.
  *
  * @param end
  *   the last version of the ranges, in which row tracking is on
  */
final private[interlock] class TrackedVersions(end: Snapshot, at: Long => Snapshot) {
  import TrackedVersions._

  private val log = new CommitLog(end)

  /** None if a range may begin after `after`. */
  def untrackedSince(after: Long): Option[Untracked] = {
    val commits = read(after + 1 to end.version)
    val defined = commits.collect { case (version, Some(Commit(_, _, Some(metadata), _, _))) =>
      version -> isOn(metadata)
    }
    val before = Option.when(defined.nonEmpty)(after -> isOn(at(after).metadata))
    val turnedOn = (before ++ defined).zip(defined).collect {
      case ((_, false), (version, true)) => Untracked(version, off(version))
    }
    val losing = commits.collect {
      case (version, commit) if commit.forall(losesVersions) =>
        Untracked(version, lost(version))
    }
    (turnedOn ++ losing).maxByOption(_.first)
  }

  /** The commits without their files; none for a version that is gone from the log. */
  private def read(versions: Seq[Long]): Seq[(Long, Option[Commit])] = {
    def one(version: Long) = version -> log.readWithoutFiles(version)
    if (versions.size <= ReadInTurn) versions.map(one)
    else ThreadUtils.parmap(versions, "interlock-read-range", Readers)(one)
  }

  /** Whether a commit gave its own version to rows that it did not change. Delta marks a commit that
    * copied rows without their versions. RESTORE does not copy rows, but it may bring back files that
    * were written without row tracking.
    */
  private def losesVersions(commit: Commit): Boolean = {
    val isRestore = commit.info.exists(_.operation == DeltaOperations.OP_RESTORE)
    val isMarked =
      getTagValueFromCommitInfo(commit.info, PreservedRowTrackingTag.key).contains("false")
    lazy val files = log.read(commit.version).fold(Seq.empty[FileAction])(_.files)
    (isRestore || isMarked) && files.exists {
      case add: AddFile => add.defaultRowCommitVersion.forall(_ >= commit.version)
      case _ => false
    } && (isRestore || files.exists(_.isInstanceOf[RemoveFile]))
  }
}

private[interlock] object TrackedVersions {
  private val ReadInTurn = 10
  private val Readers = 8

  def isTracked(protocol: Protocol, metadata: Metadata): Boolean =
    isOn(metadata) && RowTracking.isSupported(protocol)

  private def isOn(metadata: Metadata): Boolean =
    DeltaConfigs.ROW_TRACKING_ENABLED.fromMetaData(metadata)

  private def off(first: Long): String =
    s"Row tracking was off before version $first, and rows that were written without it do not " +
      "carry the version in which they last changed."

  private def lost(version: Long): String =
    s"Version $version gave its own version to rows that it did not change, since they were " +
      "written while row tracking was off."
}
