package io.interlock.coordinator

import java.io.{ByteArrayOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.collection.mutable
import scala.util.Try

import io.delta.storage.LogStore
import org.apache.hadoop.fs.{FileStatus, Path}

/** The result of publishing: what is at `N.json` now. */
sealed trait Publication {
  def file: FileStatus
}

/** The commit's own bytes. */
final case class Published(file: FileStatus) extends Publication

/** Another commit, which was not touched. */
final case class Foreign(file: FileStatus) extends Publication

/** It is not known whether the file is there, or will appear later. */
final class PublishUnknown(file: Path, cause: Throwable)
    extends IOException(s"It is not known whether $file was written durably", cause)

/** Creates `N.json` completely or not at all, and replaces no other file but in the case that
  * `ratified` describes.
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  * @param isExclusive
  *   see [[Publisher.exclusive]]
  */
final class Publisher private (
    logStores: TableLog => LogStore,
    isExclusive: Boolean
) {

  /** Reads the lines of a commit once and stages their bytes: in memory or, if they are many, in a
    * file of the log folder. If this fails, nothing is left behind.
    *
    * @throws CoordinatorException
    *   if the storage must refuse to create a file twice, and does not
    */
  def stage(log: TableLog, version: Long, txnId: String, lines: Iterator[String]): CommitContent = {
    val name =
      if (isExclusive) Publisher.temporaryName(version) else Publisher.stagedName(version, txnId)
    stage(log, version, name, limit(log), lines)
  }

  /** The same, in a file of the log folder in any case. */
  def stageInFile(
      log: TableLog,
      version: Long,
      txnId: String,
      lines: Iterator[String]
  ): StagedFile =
    stage(log, version, Publisher.stagedName(version, txnId), limit = -1, lines)
      .asInstanceOf[StagedFile]

  private def stage(
      log: TableLog,
      version: Long,
      name: String,
      limit: Long,
      lines: Iterator[String]
  ): CommitContent = {
    requireExclusion(log)
    CommitPhases.reached(CommitPhase.Staging, log, version)
    val content = read(log, name, limit, lines)
    try CommitPhases.reached(CommitPhase.Staged, log, version)
    catch {
      case e: Throwable =>
        discard(log, content)
        throw e
    }
    content
  }

  /** Publishes a staged commit, of this process or another one, and returns what is at `N.json`
    * now, durably. After a success the staged file is gone.
    *
    * @throws PublishUnknown
    *   if it is not known whether the file is there and durable
    * @throws java.io.IOException
    *   if nothing became visible
    */
  def publish(
      log: TableLog,
      version: Long,
      content: CommitContent,
      whenSeen: () => Unit = () => ()
  ): Publication = {
    val alone = group(log)
    val put = alone.put(version, content, whenSeen)
    alone.settle(version).getOrElse(put)
  }

  /** Publishes several commits of one log, which become durable together. */
  def group(log: TableLog): Publisher.Group =
    new Publisher.Group(log, logStores, () => new LocalFolder(log).sync())

  /** The same commits, for a log on a local disk in files, which are written side by side. A commit
    * whose file cannot be written stays in memory.
    */
  def written(log: TableLog, commits: Seq[(Long, CommitContent)]): Seq[CommitContent] =
    if (!LogFolder.isLocal(log)) commits.map(_._2)
    else
      SideBySide(commits) {
        case (version, InMemory(bytes, sha256)) =>
          val name = Publisher.temporaryName(version)
          StagedFile(name, new LocalFolder(log).write(name, Iterator.single(bytes)), sha256)
        case (_, staged) => staged
      }.zip(commits).map { case (file, (_, content)) => file.getOrElse(content) }

  /** Tries to delete the staged file of a commit that will not be published, and tells whether it is
    * gone.
    */
  def discard(log: TableLog, content: CommitContent): Boolean = content match {
    case StagedFile(name, _, _) => Try(LogFolder.of(log).delete(name)).isSuccess
    case _: InMemory => true
  }

  /** @throws CoordinatorException
    *   if the storage must refuse to create a file twice, and does not
    */
  def requireExclusion(log: TableLog): Unit =
    if (LogFolder.isLocal(log)) LinkProbe.require(log, new LocalFolder(log))
    else if (isExclusive) RemotePublisher.require(log, logStores(log))

  private def limit(log: TableLog): Long =
    if (isExclusive && LogFolder.isLocal(log)) 0 else LogFolder.Small

  private def read(
      log: TableLog,
      name: String,
      limit: Long,
      lines: Iterator[String]
  ): CommitContent = {
    val digest = LogFolder.newDigest()
    val parts = lines.map { line =>
      val bytes = s"$line\n".getBytes(UTF_8)
      digest.update(bytes)
      bytes
    }
    val head = new ByteArrayOutputStream()
    while (parts.hasNext && head.size <= limit) head.write(parts.next())
    if (head.size <= limit) InMemory(head.toByteArray, digest.digest())
    else {
      val size = LogFolder.of(log).write(name, Iterator.single(head.toByteArray) ++ parts)
      StagedFile(name, size, digest.digest())
    }
  }
}

object Publisher {

  /** Commits of one log that are published in order. On a local disk the folder is synced once for
    * all of them. For use by one thread.
    *
    * @param sync
    *   syncs the folder
    */
  final class Group private[coordinator] (
      log: TableLog,
      logStores: TableLog => LogStore,
      sync: () => Unit
  ) {
    private val links = mutable.Map.empty[Long, LocalPublisher]
    private lazy val synced = Try(sync())

    /** Publishes a commit and returns what is at `N.json` now. On a local disk it is not durable
      * before it is [[settle]]d.
      *
      * @param whenSeen
      *   as in [[CommitRequest]]
      * @throws PublishUnknown
      *   if it is not known whether the file is there
      * @throws java.io.IOException
      *   if nothing became visible
      */
    def put(version: Long, content: CommitContent, whenSeen: () => Unit): Publication =
      if (!LogFolder.isLocal(log))
        new RemotePublisher(log, version, logStores(log)).publish(content)
      else {
        val link = new LocalPublisher(log, version, content, whenSeen)
        val publication = link.link()
        if (publication.isInstanceOf[Published]) links(version) = link
        publication
      }

    /** What is at `N.json` durably, after all commits were put; none if that was known before. If
      * another writer has replaced the commit, the checksums that were derived from it are deleted.
      *
      * @throws PublishUnknown
      *   if it is not known whether the file is there and durable
      */
    def settle(version: Long): Option[Publication] = links.get(version).map { link =>
      synced.failed.foreach(e => throw new PublishUnknown(log.file(version), e))
      val publication = link.settle()
      if (publication.isInstanceOf[Foreign]) deleteChecksums(version)
      publication
    }

    private def deleteChecksums(first: Long): Unit = {
      val folder = LogFolder.of(log)
      links.keys.filter(_ >= first).foreach(version =>
        Try(folder.delete(LogFolder.checksumName(version)))
      )
    }
  }

  /** For commits that are decided by the creation of `N.json` alone: the storage must refuse to
    * create it a second time.
    */
  def exclusive(logStores: TableLog => LogStore): Publisher =
    new Publisher(logStores, isExclusive = true)

  /** For commits that a database has ratified: if the storage cannot refuse to create a file a
    * second time, the file is looked for before it is written. One that another writer creates
    * between the two is replaced.
    */
  def ratified(logStores: TableLog => LogStore): Publisher =
    new Publisher(logStores, isExclusive = false)

  private[coordinator] def temporaryName(version: Long): String =
    f".$version%020d.${UUID.randomUUID()}.tmp"

  private def stagedName(version: Long, txnId: String): String =
    f".$version%020d.$txnId-${UUID.randomUUID()}.staged"
}
