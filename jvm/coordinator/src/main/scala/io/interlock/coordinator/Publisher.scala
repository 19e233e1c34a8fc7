package io.interlock.coordinator

import java.io.{ByteArrayOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.util.Try

import io.delta.storage.LogStore
import org.apache.hadoop.fs.{FileStatus, Path}

/** What is at `N.json` after an attempt to publish. */
sealed trait Publication {
  def file: FileStatus
}

/** The bytes of the attempt, durable. */
final case class Published(file: FileStatus) extends Publication

/** Another commit; nothing of it was touched. */
final case class Foreign(file: FileStatus) extends Publication

/** The file may or may not be there, now or later. */
final class PublishUnknown(file: Path, cause: Throwable)
    extends IOException(s"It is not known whether $file was written durably", cause)

/** Makes `N.json`, whole and never over another file.
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  */
final class Publisher private (
    logStores: TableLog => LogStore,
    mode: Publisher.Mode
) {

  /** Reads the lines of a commit once and makes their bytes ready: in memory or, where they are many,
    * in a file of the log folder. If it fails, nothing is left.
    *
    * @throws CoordinatorException
    *   where the storage does not refuse a second creation of a file, and it must
    */
  def stage(log: TableLog, version: Long, txnId: String, lines: Iterator[String]): CommitContent = {
    requireExclusion(log)
    CommitPhases.reached(CommitPhase.Staging, log, version)
    val content = read(log, Publisher.stagedName(version, txnId, mode), limit(log), lines)
    try CommitPhases.reached(CommitPhase.Staged, log, version)
    catch {
      case e: Throwable =>
        discard(log, content)
        throw e
    }
    content
  }

  /** Publishes what was staged, here or elsewhere, and says what is there now. After a success the
    * staged file is gone.
    *
    * @param whenSeen
    *   as in [[CommitRequest]]
    * @throws PublishUnknown
    *   where nobody can say whether the file is there, or is durable
    * @throws java.io.IOException
    *   where nothing became visible
    */
  def publish(
      log: TableLog,
      version: Long,
      content: CommitContent,
      whenSeen: () => Unit = () => ()
  ): Publication =
    if (LogFolder.isLocal(log)) new LinkPublication(log, version, whenSeen).publish(content)
    else new LogStorePublication(log, version, logStores(log)).publish(content)

  /** Deletes the staged file of a commit that will not be published, best effort. */
  def discard(log: TableLog, content: CommitContent): Unit = content match {
    case StagedFile(name, _, _) => Try(LogFolder.of(log).delete(name)): Unit
    case _: InMemory =>
  }

  /** @throws CoordinatorException
    *   where the storage does not refuse a second creation of a file, and it must
    */
  def requireExclusion(log: TableLog): Unit =
    if (LogFolder.isLocal(log)) LinkProbe.require(log, new LocalFolder(log))
    else if (mode == Publisher.Exclusive) LogStorePublication.require(log, logStores(log))

  private def limit(log: TableLog): Long =
    if (mode == Publisher.Exclusive && LogFolder.isLocal(log)) 0 else LogFolder.Small

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
  sealed private trait Mode
  private case object Exclusive extends Mode
  private case object Ratified extends Mode

  /** For commits that nothing but the creation of `N.json` decides: the storage must refuse a second
    * one.
    */
  def exclusive(logStores: TableLog => LogStore): Publisher = new Publisher(logStores, Exclusive)

  /** For commits that a database has let in: where the storage cannot refuse a second creation, the
    * file is looked for before it is written.
    */
  def ratified(logStores: TableLog => LogStore): Publisher = new Publisher(logStores, Ratified)

  private[coordinator] def temporaryName(version: Long): String =
    f".$version%020d.${UUID.randomUUID()}.tmp"

  private def stagedName(version: Long, txnId: String, mode: Mode): String = mode match {
    case Exclusive => temporaryName(version)
    case Ratified => f".$version%020d.$txnId-${UUID.randomUUID()}.staged"
  }
}
