package io.interlock.coordinator.postgres

import java.io.IOException

import scala.annotation.tailrec
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import io.interlock.coordinator._
import org.slf4j.LoggerFactory

/** Publishes the ratified commits of a batch, in order. For use once.
  *
  * @param before
  *   the commit before them, if this process made it
  */
final private[postgres] class BatchPublisher(
    context: StoreContext,
    log: TableLog,
    tail: LogTail,
    before: Option[LastCommit],
    requests: Seq[CommitRequest]
) {
  import BatchPublisher._

  private val group = context.publisher.group(log)

  /** @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if no commit of the batch could be published
    */
  def apply(state: TableState, reply: Reply, contents: Seq[CommitContent]): Seq[CommitOutcome] = {
    val ratified = reply.commits.map(_.txnId).toSet
    val commits = requests.zip(contents).takeWhile { case (asked, _) =>
      ratified.contains(asked.txnId)
    }
    val files = context.publisher
      .written(log, commits.map { case (request, content) => request.version -> content })
    try {
      val outcomes = durable(state, commits, visible(state, commits.zip(files)))
      val all = outcomes ++ requests.drop(outcomes.size).map(_ => Taken(Seq.empty))
      remember(state, all)
      all
    } finally contents.zip(files).foreach {
        case (_: InMemory, file) => context.publisher.discard(log, file)
        case _ =>
      }
  }

  /** The outcomes once the commits can be seen. */
  private def visible(
      state: TableState,
      commits: Seq[((CommitRequest, CommitContent), CommitContent)]
  ): Seq[CommitOutcome] = commits.foldLeft(Vector.empty[CommitOutcome]) {
    case (done, ((request, content), file)) =>
      // A look takes its time on a remote storage, and the last one came just before the first commit.
      val isLookedAt = done.isEmpty && !LogFolder.isLocal(log)
      val contents = Iterator.single(file) ++ Iterator.continually(content) // its file may be gone
      done :+ (done.lastOption match {
        case Some(unknown: Unknown) => unknown
        case Some(_: Taken) if done.count(_.isInstanceOf[Taken]) > 1 => Taken(Seq.empty)
        case Some(_: Taken) => if (mayBeThere(request)) unknown(request) else Taken(Seq.empty)
        case Some(made: Committed) if isReplaced(lastCommit(requests(done.size - 1), made)) =>
          unknown(request)
        case None if before.exists(isReplaced) => stopped(before.get)
        case _ => outcome(state, request, isFirst = done.isEmpty) {
            if (!isLookedAt) request.requireSameTable(log)
            group.put(request.version, contents.next(), request.whenSeen)
          }
      })
  }

  /** Whether another process has published the commit, which it may do as soon as it is ratified. If
    * it has not, it has published none behind it either.
    */
  private def mayBeThere(request: CommitRequest): Boolean =
    Try(tail.txnAt(request.version)).toOption.forall(_.contains(request.txnId))

  /** The outcome of a ratified commit that is not published here, but maybe by another process. */
  private def unknown(request: CommitRequest): Unknown =
    Unknown(new PublishUnknown(log.file(request.version), null))

  /** Whether another writer has replaced a commit on a local disk, where a look takes no time. */
  private def isReplaced(made: LastCommit): Boolean = LogFolder.isLocal(log) && Try(
    made.isKept(log) || tail.txnAt(made.version).contains(made.txnId)
  ).toOption.contains(false)

  private def lastCommit(request: CommitRequest, made: Committed) =
    LastCommit.of(request, made.version, made.file)

  /** The outcomes once the folder is synced. */
  private def durable(
      state: TableState,
      commits: Seq[(CommitRequest, CommitContent)],
      visible: Seq[CommitOutcome]
  ): Seq[CommitOutcome] = commits.zip(visible).foldLeft(Vector.empty[CommitOutcome]) {
    case (done, ((request, _), made: Committed)) =>
      done :+ (done.lastOption match {
        case Some(unknown: Unknown) => unknown
        case Some(_: Taken) => unknown(request)
        case _ =>
          outcome(state, request, isFirst = false) {
            group.settle(request.version).getOrElse(Published(made.file))
          } match {
            case _: Taken if visible.drop(done.size + 1).exists(_.mayBeThere) =>
              stopped(lastCommit(request, made))
            case other => other
          }
      })
    case (done, (_, other)) => done :+ other
  }

  /** The outcome where a commit was replaced and those of the batch may be there behind it. */
  private def stopped(replaced: LastCommit): CommitOutcome = {
    context.replaced.stopAt(log, replaced, requests)
    Unknown(replaced.overwritten(log))
  }

  /** @param isFirst
    *   whether no commit of the batch was published yet
    */
  private def outcome(state: TableState, request: CommitRequest, isFirst: Boolean)(
      publication: => Publication
  ): CommitOutcome = {
    import request.version
    val ours = Ratified(version, request.txnId, None)
    Try(tried(version, MostTries)(publication) match {
      case Published(file) => Some(file)
      case Foreign(file) => Option.when(tail.txnAt(version).contains(request.txnId))(file)
    }) match {
      case Success(Some(file)) => Committed(version, file)
      case Success(None) => overtaken(state, ours, isFirst)
      case Failure(e) => Unknown(e) // it is ratified: the next writer may publish it
    }
  }

  @tailrec private def tried(
      version: Long,
      tries: Int
  )(publication: => Publication): Publication = {
    val found =
      try Right(publication)
      catch { case e: IOException if tries > 1 => Left(e) }
    found match {
      case Right(found) => found
      case Left(e) =>
        logger.warn(s"Version $version of ${log.path} is tried again: ${e.getMessage}")
        if (Pause(PauseMillis)) tried(version, tries - 1)(publication) else throw e
    }
  }

  /** The outcome after a foreign commit took the version; it stays, even if the database cannot be
    * told now.
    */
  private def overtaken(state: TableState, ours: Ratified, isFirst: Boolean): CommitOutcome = {
    try context.states.put(log.path, tail.revoke(state, ours))
    catch {
      case e: CoordinatorException if isFirst && e.condition == "INTERLOCK_COORDINATOR_RESTORED" =>
        throw e
      case NonFatal(e) =>
        logger.warn(s"Version ${ours.version} of ${log.path} is to be revoked: ${e.getMessage}")
    }
    Taken(Try(tail.body(ours.version, None)).toOption.flatten.toSeq)
  }

  private def remember(state: TableState, outcomes: Seq[CommitOutcome]): Unit =
    outcomes.lastOption.collect {
      case Committed(version, file) if outcomes.forall(_.isInstanceOf[Committed]) =>
        val own = LastCommit.of(requests.last, version, file)
        // Another process may have committed behind it before a lost reply was asked for.
        context.states.put(log.path, state.copy(own = Option.when(version == state.head)(own)))
    }: Unit
}

private object BatchPublisher {
  private val logger = LoggerFactory.getLogger(classOf[BatchPublisher])
  private val MostTries = 3
  private val PauseMillis = 50L
}
