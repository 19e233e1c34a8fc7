package io.interlock.coordinator

import java.io.IOException

import scala.util.Try
import scala.util.control.NonFatal

import io.delta.storage.LogStore
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory

/** Commits are ordered by the file system itself: whoever creates `N.json` has version N.
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  */
final class FileSystemStore(logStores: TableLog => LogStore) extends CommitStore {
  private val logger = LoggerFactory.getLogger(classOf[FileSystemStore])
  private val publisher = Publisher.exclusive(logStores)
  private val lastCommits = new LastCommits

  /** As [[CommitStore.commit]].
    *
    * @throws java.io.IOException
    *   where the first request met it and nothing became visible; a later request that meets it is
    *   [[Taken]] by nobody, to be tried again
    */
  override def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome] =
    requests.foldLeft(Vector.empty[CommitOutcome]) { (done, request) =>
      done :+ done.lastOption.fold(commit(log, request))(next(log, _, request))
    }

  /** Lets commits be made on top of what the log holds now, whatever became of earlier ones. */
  def repair(log: TableLog): Unit = lastCommits.forget(log)

  override def close(): Unit = ()

  /** A version is made only on top of the one before it. */
  private def next(log: TableLog, before: CommitOutcome, request: CommitRequest): CommitOutcome =
    before match {
      case Committed(version, _) if version + 1 == request.version =>
        try commit(log, request)
        catch {
          case NonFatal(e) =>
            logger.warn(s"Version ${request.version} of ${log.path} has to be tried again", e)
            Taken(Seq.empty)
        }
      case _ => Taken(Seq.empty)
    }

  private def commit(log: TableLog, request: CommitRequest): CommitOutcome = {
    val last = lastCommits.of(log, request)
    last.foreach(_.requireKept(log, request.version))
    last
      .filter(_.txnId == request.txnId)
      .map(made => found(log, request.copy(version = made.version), made.file))
      .orElse(inTheWay(log, request))
      .getOrElse {
        if (!last.exists(_.version + 1 == request.version)) requireNoGap(log, request.version)
        publish(log, request)
      }
  }

  /** A look that saves the writing of a file where the version is taken already. */
  private def inTheWay(log: TableLog, request: CommitRequest): Option[CommitOutcome] =
    if (LogFolder.isLocal(log))
      LogFolder.of(log).status(LogFolder.commitName(request.version)).filter(_.isFile)
        .map(found(log, request, _))
    else None

  private def publish(log: TableLog, request: CommitRequest): CommitOutcome = {
    val lines = CommitLines.stamped(request.lines, Stamp.filesystem(request.version))
    val content = publisher.stage(log, request.version, request.txnId, lines)
    try
      publisher.publish(log, request.version, content) match {
        case Published(file) => committed(log, request, file)
        case Foreign(file) =>
          publisher.discard(log, content)
          found(log, request, file)
      }
    catch {
      // A disk that failed once to sync may say later that it did not: then nobody knows.
      case unknown: PublishUnknown if unknown.getCause.isInstanceOf[IOException] => Unknown(unknown)
      case unknown: PublishUnknown => lookedUp(log, request).getOrElse(Unknown(unknown))
      case e: Throwable =>
        publisher.discard(log, content)
        throw e
    }
  }

  /** The request's own commit, found where an earlier attempt got no reply, is a success. */
  private def found(log: TableLog, request: CommitRequest, file: FileStatus): CommitOutcome = {
    val folder = LogFolder.of(log)
    try
      if (isOwn(folder, request)) {
        folder.sync()
        committed(log, request, file)
      } else Taken(Try(folder.body(request.version)).toOption.flatten.toSeq)
    catch { case NonFatal(e) => Unknown(e) }
  }

  private def committed(log: TableLog, request: CommitRequest, file: FileStatus): CommitOutcome = {
    lastCommits.remember(log, request, file)
    Committed(request.version, file)
  }

  /** What the log says after a reply was lost; none where it does not say. */
  private def lookedUp(log: TableLog, request: CommitRequest): Option[CommitOutcome] = Try {
    val folder = LogFolder.of(log)
    folder.status(LogFolder.commitName(request.version)).filter(_ => isOwn(folder, request))
      .map(found(log, request, _))
  }.toOption.flatten

  private def isOwn(folder: LogFolder, request: CommitRequest): Boolean =
    folder.firstLine(request.version).flatMap(CommitLines.txnIdOf).contains(request.txnId)

  /** The folder may have been emptied, and filled anew, since the transaction read the table.
    *
    * @throws CoordinatorException
    *   where the version before `version` is not there
    */
  private def requireNoGap(log: TableLog, version: Long): Unit = {
    val folder = LogFolder.of(log)
    val before = version - 1
    def checkpointed =
      folder.list().exists(_.getPath.getName.startsWith(f"$before%020d.checkpoint"))
    if (version > 0 && folder.status(LogFolder.commitName(before)).isEmpty && !checkpointed)
      throw new CoordinatorException(
        "INTERLOCK_LOG_GAP",
        Map("path" -> log.path.toString, "version" -> version.toString, "before" -> before.toString)
      )
  }
}
