package io.interlock.spark.commits

import scala.util.Try

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.CommitQueue
import io.interlock.spark.properties.Exclusive
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.actions.{Action, CommitInfo}
import org.apache.spark.sql.delta.util.{DeltaCommitFileProvider, FileNames}
import org.apache.spark.sql.delta.{DeltaHistoryManager, Snapshot}

/** Warns if a writer without Interlock has committed: its commits are recognized, but nothing stops
  * it. There is one warning for each series of such commits.
  */
object ForeignWriters extends Logging {

  /** The last commit of a table that this process knows, and whether it is foreign. */
  final private case class Seen(version: Long, isForeign: Boolean)

  private val seen =
    CacheBuilder.newBuilder().maximumSize(10000).build[(Path, String), Seen]().asMap

  private def key(snapshot: Snapshot) = (snapshot.deltaLog.logPath, snapshot.metadata.id)

  /** Checks the commits of a snapshot that are new to this process, back to the last checkpoint;
    * for a table that it has not seen before, only the last commit.
    */
  def look(table: String, snapshot: Snapshot, queue: CommitQueue): Unit = {
    val first = Option(seen.get(key(snapshot))).fold(snapshot.version)(_.version + 1).max(0)
    (snapshot.logSegment.deltas.map(FileNames.deltaVersion) :+ snapshot.version).distinct
      .filter(_ >= first)
      .foreach { version =>
        Try(infoOf(snapshot, version, queue)).foreach(note(table, snapshot, version, _))
      }
  }

  /** Checks one commit, whose commitInfo may be missing. */
  def note(table: String, snapshot: Snapshot, version: Long, info: Option[CommitInfo]): Unit = {
    val isForeign = !info.exists(CommitTags.isOurs)
    val _ = seen.compute(
      key(snapshot),
      (_, before) =>
        if (before != null && before.version >= version) before
        else {
          if (isForeign && (before == null || !before.isForeign)) warn(table, version, info)
          Seen(version, isForeign)
        }
    )
  }

  private def infoOf(snapshot: Snapshot, version: Long, queue: CommitQueue): Option[CommitInfo] = {
    val log = snapshot.deltaLog
    queue.at(version).flatMap(_.lines.headOption).map(Action.fromJson)
      .collect { case info: CommitInfo => info }
      .orElse(DeltaHistoryManager.getCommitInfoOpt(
        log.store,
        DeltaCommitFileProvider(snapshot).deltaFile(version),
        log.newDeltaHadoopConf()
      ))
  }

  private def warn(table: String, version: Long, info: Option[CommitInfo]): Unit = logWarning(
    s"Version $version of $table was committed by a writer without Interlock " +
      s"(${info.flatMap(_.engineInfo).getOrElse("it does not say which")}). Such a writer follows " +
      "no policy, and on a local disk it may overwrite commits: let all writers of the table " +
      s"load Interlock, or keep others out by the table property ${Exclusive.Key}."
  )
}
