package io.interlock.coordinator

import java.io.{ByteArrayInputStream, FileNotFoundException, IOException}
import java.nio.file.{AccessDeniedException, FileAlreadyExistsException}
import java.util.concurrent.ThreadLocalRandom

import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import io.delta.storage.LogStore
import org.apache.hadoop.fs.FileStatus
import org.apache.hadoop.security.AccessControlException

/** Publishes one version on a storage that is not a local disk, in the way that `FileCreation` finds
  * for it. After a failure the file is read back and compared; if there is none, the write is tried
  * again a few times.
  */
final private[coordinator] class RemotePublisher(
    log: TableLog,
    version: Long,
    logStore: LogStore
) {
  import RemotePublisher._

  private val folder = new HadoopFolder(log)
  private val target = LogFolder.commitName(version)
  private val creation = FileCreation.of(log, logStore)

  /** Also false if that cannot be found out: then the file is looked for first. */
  private val exclusive = Try(creation.fault).toOption.exists(_.isEmpty)

  def publish(content: CommitContent): Publication = {
    CommitPhases.reached(CommitPhase.Publishing, log, version)
    put(content, MostTries, isMade = false) match {
      case published: Published => settle(published, content)
      case foreign => foreign
    }
  }

  /** @param isMade
    *   whether an earlier try may have made the file
    */
  private def put(content: CommitContent, tries: Int, isMade: Boolean): Publication =
    Try(write(content)) match {
      case Success(()) => written(content)
      case Failure(e) =>
        Try(readBack(content)) match {
          case Success(Some(publication)) => publication
          case Success(None) if tries == MostTries && neverWritten(e, creation) =>
            throw new IOException(s"${log.file(version)} cannot be made", e)
          case _ =>
            val mayBeMade = isMade || !e.isInstanceOf[NotCreated]
            if (tries > 1 && hasPaused()) put(content, tries - 1, mayBeMade)
            else if (mayBeMade) unknown(e)
            else throw e
        }
    }

  private def write(content: CommitContent): Unit = {
    if (!exclusive && folder.status(target).nonEmpty) throw new FileAlreadyExistsException(target)
    val in = content match {
      case InMemory(bytes, _) => new ByteArrayInputStream(bytes)
      case StagedFile(name, _, _) => folder.open(name)
    }
    creation.create(log.file(version), in)
  }

  private def written(content: CommitContent): Publication =
    try {
      val found = if (exclusive) folder.status(target).map(sized(content)) else readBack(content)
      found.getOrElse(throw new FileNotFoundException(target))
    } catch { case NonFatal(e) => unknown(e) }

  private def sized(content: CommitContent)(file: FileStatus): Publication =
    if (file.getLen == content.size) Published(file) else Foreign(file)

  private def readBack(content: CommitContent): Option[Publication] =
    folder.status(target).filter(_.isFile).map { file =>
      val same = file.getLen == content.size && folder.sha256(file).sameElements(content.sha256)
      if (same) Published(file) else Foreign(file)
    }

  private def settle(published: Published, content: CommitContent): Publication =
    try {
      CommitPhases.reached(CommitPhase.Linked, log, version)
      content match {
        case StagedFile(name, _, _) => Try(folder.delete(name)): Unit
        case _: InMemory =>
      }
      CommitPhases.reached(CommitPhase.Published, log, version)
      published
    } catch { case NonFatal(e) => unknown(e) }

  /** Waits before the next try; false if the thread is interrupted. */
  private def hasPaused(): Boolean =
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(50, 200))
      true
    } catch {
      case _: InterruptedException =>
        Thread.currentThread().interrupt()
        false
    }

  private def unknown(e: Throwable): Nothing = throw new PublishUnknown(log.file(version), e)
}

private[coordinator] object RemotePublisher {
  private val MostTries = 4

  /** @throws CoordinatorException
    *   if two writers could both be told that they have made a version
    */
  def require(log: TableLog, logStore: LogStore): Unit =
    FileCreation.of(log, logStore).fault.foreach { found =>
      throw new CoordinatorException(
        "INTERLOCK_NO_PUT_IF_ABSENT",
        Map(
          "path" -> log.path.toString,
          "logStore" -> logStore.getClass.getName,
          "found" -> found
        )
      )
    }

  /** Whether the failure came before the file could be created. */
  private def neverWritten(e: Throwable, creation: FileCreation): Boolean = e match {
    case made: NotCreated => neverWritten(made.getCause, creation)
    case _: AccessControlException | _: AccessDeniedException => creation.isRefusalFinal
    case _: FileNotFoundException => true
    case _: FileAlreadyExistsException => true // by a folder, or a file gone since
    case _ => false
  }
}
