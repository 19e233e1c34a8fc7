package io.interlock.coordinator

import java.io.IOException
import java.nio.file.Files

import scala.collection.mutable
import scala.concurrent.duration._
import scala.util.control.NonFatal
import scala.util.{Success, Try}

import io.delta.storage.LogStore
import org.apache.hadoop.fs.FileStatus

/** Orders commits by the file system itself: the writer that creates `N.json` has version N.
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  * @param patience
  *   how long who waits for an atomic block lets it be undecided
  */
final class FileSystemStore private[coordinator] (
    logStores: TableLog => LogStore,
    patience: FiniteDuration
) extends CommitStore {
  import FileSystemStore._

  def this(logStores: TableLog => LogStore) = this(logStores, FileSystemStore.Patience)

  private val publisher = Publisher.exclusive(logStores)
  private val lastCommits = new LastCommits

  /** See [[CommitStore.commit]]; an error affects only the commit that it happened to. */
  override def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome] = {
    val batch = new Batch(publisher, log, requests)
    val seen = requests.foldLeft(Vector.empty[CommitOutcome]) { (done, request) =>
      done :+ (done.lastOption match {
        case Some(before) if !isBefore(before, request) => Taken(Seq.empty)
        case before => tried(commit(log, request, batch, isFirst = before.isEmpty))
      })
    }
    batch.discardUnused()
    requests.zip(seen).foldLeft(Vector.empty[CommitOutcome]) { case (done, (request, visible)) =>
      val isBehind = done.lastOption.forall(isBefore(_, request))
      val isFollowed = seen.drop(done.size + 1).exists(_.mayBeThere)
      val outcome = tried(settled(log, request, batch, visible, isBehind, isFollowed))
      outcome match {
        case Committed(version, file) =>
          lastCommits.remember(log, LastCommit.of(request, version, file))
        case _ =>
      }
      done :+ outcome
    }
  }

  override def versionsTogether: Int = 2

  /** See [[CommitStore.commitTogether]]. */
  override def commitTogether(parts: Seq[TogetherPart]): Seq[CommitOutcome] =
    new FileBlock(this, publisher, logStores, parts).run()

  override def settle(log: TableLog, version: Long): Unit =
    FileBlock.settle(log, version, publisher, logStores, patience)

  /** Remembers a commit that was made without [[commit]]. */
  private[coordinator] def made(log: TableLog, request: CommitRequest, file: FileStatus): Unit =
    lastCommits.remember(log, LastCommit.of(request, request.version, file))

  /** See [[CommitStore.check]]; a local log is tested once its folder exists. */
  override def check(log: TableLog): Unit =
    if (!LogFolder.isLocal(log) || Files.isDirectory(new LocalFolder(log).path))
      publisher.requireExclusion(log)

  /** Only for a log on a local disk or a mounted network disk. */
  override private[coordinator] def processLock(log: TableLog): ProcessLock =
    if (LogFolder.isLocal(log)) new FileProcessLock(log) else ProcessLock.None

  override def close(): Unit = ()

  /** Whether the outcome is the version directly before the request's. */
  private def isBefore(outcome: CommitOutcome, request: CommitRequest): Boolean = outcome match {
    case Committed(version, _) => version + 1 == request.version
    case _ => false
  }

  private def tried(outcome: => CommitOutcome): CommitOutcome =
    try outcome
    catch {
      case NonFatal(e) => Failed(e)
      case broken: Throwable => Unknown(broken)
    }

  private def commit(
      log: TableLog,
      request: CommitRequest,
      batch: Batch,
      isFirst: Boolean
  ): CommitOutcome = {
    val last = batch.last.orElse(lastCommits.of(log, request)).filter(_.tableId == request.tableId)
    val isBehindLast = last.exists(_.version + 1 == request.version)
    def requireKept(): Unit = last.foreach(_.requireKept(log, request.version))
    // The batch's commit before this one was looked at when it was made.
    if (isFirst || !isBehindLast) requireKept()
    if (request.isExclusive && !last.exists(made => isBehindLast && !Prepared.isOf(made.txnId)))
      settle(log, request.version - 1)
    val outcome = last
      .filter(_.txnId == request.txnId)
      .map(made => found(log, request.copy(version = made.version), made.file))
      .orElse(inTheWay(log, request))
      .getOrElse {
        if (!isBehindLast) LogFolder.requireNoGap(log, request.version)
        publish(log, request, batch, () => requireKept())
      }
    outcome match {
      case Committed(version, file) => batch.last = Some(LastCommit.of(request, version, file))
      case _ =>
    }
    outcome
  }

  /** Checks whether the version is already taken, which saves writing a file. */
  private def inTheWay(log: TableLog, request: CommitRequest): Option[CommitOutcome] =
    if (LogFolder.isLocal(log))
      LogFolder.of(log).status(LogFolder.commitName(request.version)).filter(_.isFile)
        .map(found(log, request, _))
    else None

  /** @param requireKept
    *   looks at the commit before once more: staging a file takes its time
    */
  private def publish(
      log: TableLog,
      request: CommitRequest,
      batch: Batch,
      requireKept: () => Unit
  ): CommitOutcome = {
    val content = batch.contentOf(request)
    try unlessUnknown(log, request) {
        request.requireSameTable(log)
        content match {
          case _: StagedFile => requireKept()
          case _ =>
        }
        batch.group.put(request.version, content, request.whenSeen) match {
          case Published(file) => Committed(request.version, file)
          case Foreign(file) =>
            publisher.discard(log, content)
            found(log, request, file)
        }
      }
    catch {
      case e: Throwable =>
        val isGone = publisher.discard(log, content)
        if (LogFolder.isLocal(log)) unlessLate(log, request, e, isGone) else throw e
    }
  }

  /** A link may have been made just after it was looked for.
    *
    * @param isGone
    *   whether the file is deleted that would be linked; then none is made any more
    */
  private def unlessLate(
      log: TableLog,
      request: CommitRequest,
      failed: Throwable,
      isGone: Boolean
  ): CommitOutcome = Try(ownFile(log, request)) match {
    case Success(Some(file)) => found(log, request, file)
    case Success(None) if isGone => throw failed
    case _ => Unknown(new PublishUnknown(log.file(request.version), failed))
  }

  /** The outcome once the folder is synced.
    *
    * @param isBehind
    *   whether the commit before it in the batch, if there is one, is durable
    * @param isFollowed
    *   whether a later commit of the batch may be there
    */
  private def settled(
      log: TableLog,
      request: CommitRequest,
      batch: Batch,
      seen: CommitOutcome,
      isBehind: Boolean,
      isFollowed: Boolean
  ): CommitOutcome = seen match {
    case Committed(version, file) if isBehind =>
      unlessUnknown(log, request) {
        batch.group.settle(request.version) match {
          case Some(_: Foreign) if isFollowed =>
            val ours = LastCommit.of(request, version, file)
            lastCommits.stopAt(log, ours, batch.requests)
            Unknown(ours.overwritten(log))
          case Some(Foreign(theirs)) => found(log, request, theirs)
          case Some(Published(now)) => Committed(version, now)
          case None => seen
        }
      }
    case Committed(version, _) =>
      val lost = new IOException(s"${log.file(version - 1)} is not the commit before it")
      Unknown(new PublishUnknown(log.file(version), lost))
    case _: Failed if !isBehind => Taken(Seq.empty)
    case other => other
  }

  private def unlessUnknown(log: TableLog, request: CommitRequest)(
      outcome: => CommitOutcome
  ): CommitOutcome =
    try outcome
    catch {
      // A disk that failed to sync once may report success later, so the outcome is unknown.
      case unknown: PublishUnknown if unknown.getCause.isInstanceOf[IOException] => Unknown(unknown)
      case unknown: PublishUnknown => lookedUp(log, request).getOrElse(Unknown(unknown))
    }

  /** The outcome if the version exists: a success if it is the request's own commit, whose reply
    * was lost.
    */
  private def found(log: TableLog, request: CommitRequest, file: FileStatus): CommitOutcome = {
    val folder = LogFolder.of(log)
    try {
      val body = folder.body(request.version, file)
      if (isOwn(body.fold(folder.firstLine(file))(_.lines.headOption), request)) {
        folder.sync()
        Committed(request.version, file)
      } else Taken(body.fold(Seq.empty[CommitBody])(winners(log, folder, _)))
    } catch { case NonFatal(e) => Unknown(e) }
  }

  /** The commit that has a version. On a remote storage also those after it: a try costs tens
    * of requests there, so a writer that made one for each version would not catch up with another.
    */
  private def winners(log: TableLog, folder: LogFolder, first: CommitBody): Seq[CommitBody] =
    if (LogFolder.isLocal(log)) Seq(first)
    else
      first +: Iterator.iterate(first.version + 1)(_ + 1)
        .map(next => Try(folder.body(next)).toOption.flatten)
        .take(MostWinners - 1)
        .takeWhile(_.nonEmpty).flatten.toVector

  /** The outcome by the log, after a reply was lost; none if the log does not tell. */
  private[coordinator] def lookedUp(log: TableLog, request: CommitRequest): Option[CommitOutcome] =
    Try(ownFile(log, request)).toOption.flatten.map(found(log, request, _))

  /** The file at the version, if the request is in it. */
  private def ownFile(log: TableLog, request: CommitRequest): Option[FileStatus] = {
    val folder = LogFolder.of(log)
    folder.status(LogFolder.commitName(request.version)).filter(_.isFile)
      .filter(file => isOwn(folder.firstLine(file), request))
  }

  private def isOwn(firstLine: Option[String], request: CommitRequest): Boolean =
    firstLine.flatMap(CommitLines.txnIdOf).contains(request.txnId)
}

private object FileSystemStore {
  private val Patience = 10.seconds

  /** How many commits a writer that has lost a version is told of at once. */
  val MostWinners = 32

  /** The contents of a batch, and their publication. On a local disk all are staged side by side once
    * the first is wanted.
    */
  final private class Batch(
      publisher: Publisher,
      log: TableLog,
      val requests: Seq[CommitRequest]
  ) {
    val group: Publisher.Group = publisher.group(log)

    /** The last commit of the batch that can be seen. */
    var last: Option[LastCommit] = None

    private val unused = mutable.Map.empty[Long, Try[CommitContent]]
    private lazy val stageAll: Unit = if (LogFolder.isLocal(log))
      unused ++= requests.map(_.version).zip(SideBySide(requests)(staged))

    /** The content of a request, which is wanted once. */
    def contentOf(request: CommitRequest): CommitContent = {
      stageAll
      unused.remove(request.version).fold(staged(request))(_.get)
    }

    def discardUnused(): Unit = unused.values.foreach(_.foreach(publisher.discard(log, _)))

    private def staged(request: CommitRequest): CommitContent = publisher.stage(
      log,
      request.version,
      request.txnId,
      CommitLines.stamped(request.lines, Stamp.filesystem(request.version))
    )
  }
}
