package io.interlock.coordinator

import scala.util.control.NonFatal

import io.delta.storage.LogStore
import org.slf4j.LoggerFactory

/** Commits are ordered by the file system itself: whoever creates `N.json` has version N.
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  */
final class FileSystemStore(logStores: TableLog => LogStore) extends CommitStore {
  private val logger = LoggerFactory.getLogger(classOf[FileSystemStore])
  private val publisher = Publisher.exclusive(logStores)

  /** As [[CommitStore.commit]]; an I/O error of the first request, with nothing visible, is thrown.
    * One of a later request makes that request and the rest `Taken` by nobody.
    */
  override def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome] =
    requests.foldLeft(Vector.empty[CommitOutcome]) { (done, request) =>
      done :+ (if (done.isEmpty) attempt(log, request) else next(log, done.last, request))
    }

  override def close(): Unit = ()

  /** A version counts only on top of the one before it. */
  private def next(log: TableLog, before: CommitOutcome, request: CommitRequest): CommitOutcome =
    before match {
      case Committed(version, _) if version + 1 == request.version =>
        try attempt(log, request)
        catch {
          case NonFatal(e) =>
            logger.warn(s"Version ${request.version} of ${log.path} has to try again", e)
            Taken(Seq.empty)
        }
      case _ => Taken(Seq.empty)
    }

  private def attempt(log: TableLog, request: CommitRequest): CommitOutcome =
    inTheWay(log, request).getOrElse(publish(log, request))

  /** A look that saves the writing of a file where the version is taken already. */
  private def inTheWay(log: TableLog, request: CommitRequest): Option[CommitOutcome] =
    if (LogFolder.isLocal(log)) LogFolder.of(log).status(LogFolder.commitName(request.version))
      .filter(_.isFile).map(file => found(log, request, Foreign(file)))
    else None

  private def publish(log: TableLog, request: CommitRequest): CommitOutcome = {
    val lines = CommitLines.stamped(request.lines, Stamp.filesystem(request.version))
    val content = publisher.stage(log, request.version, request.txnId, lines)
    try
      publisher.publish(log, request.version, content) match {
        case Published(file) => Committed(request.version, file)
        case foreign: Foreign =>
          publisher.discard(log, content)
          found(log, request, foreign)
      }
    catch {
      case unknown: PublishUnknown => Unknown(unknown)
      case e: Throwable =>
        publisher.discard(log, content)
        throw e
    }
  }

  /** The request's own commit, found where an earlier attempt got no reply, is a success. */
  private def found(log: TableLog, request: CommitRequest, foreign: Foreign): CommitOutcome = {
    val folder = LogFolder.of(log)
    val winner = folder.firstLine(request.version).flatMap(CommitLines.txnIdOf)
    if (!winner.contains(request.txnId)) Taken(folder.body(request.version).toSeq)
    else
      try {
        folder.sync()
        Committed(request.version, foreign.file)
      } catch { case NonFatal(e) => Unknown(e) }
  }
}
