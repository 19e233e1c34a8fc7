package io.interlock.spark.history

import scala.collection.mutable

import org.apache.spark.sql.delta.actions.{AddFile, CommitInfo, FileAction, Metadata}
import org.apache.spark.sql.delta.interlock.log.Commit

/** A version, and what it changed in the partitions that are asked for. */
final private[spark] case class VersionChange(
    version: Long,
    info: Option[CommitInfo],
    metadata: Option[Metadata],
    files: FileChanges
)

/** Changes of versions, newest first, each version's commit read once.
  *
  * Many writers leave it to the log how many rows a removed file had: then the version waits in a
  * queue until the commit comes by which added the file. Kept are the numbers of the versions that
  * wait and the names of such files, never the actions of more than one commit.
  */
final private[spark] class VersionChanges(
    commits: Iterator[Commit],
    inScope: (FileAction, Option[CommitInfo]) => Boolean
) extends Iterator[VersionChange] {
  private val waiting = mutable.Queue.empty[Long]
  private val changes = mutable.LongMap.empty[VersionChange]
  private val wanted = mutable.Map.empty[String, Long]

  override def hasNext: Boolean = waiting.nonEmpty || commits.hasNext

  override def next(): VersionChange = {
    while ((waiting.isEmpty || !isKnown(waiting.head)) && commits.hasNext) take(commits.next())
    val change = changes.remove(waiting.dequeue()).get
    wanted --= change.files.unknown.keys
    change
  }

  private def isKnown(version: Long): Boolean = changes(version).files.unknown.isEmpty

  private def take(commit: Commit): Unit = {
    commit.files.foreach {
      case add: AddFile =>
        for {
          records <- add.numPhysicalRecords
          version <- wanted.remove(add.path)
          change <- changes.get(version)
        } changes(version) = change.copy(files = change.files.knowing(add.path, records))
      case _ =>
    }
    val files = FileChanges.of(commit.info, commit.files, inScope)
    waiting.enqueue(commit.version)
    changes(commit.version) = VersionChange(commit.version, commit.info, commit.metadata, files)
    wanted ++= files.unknown.keys.map(_ -> commit.version)
  }
}
