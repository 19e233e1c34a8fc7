package io.interlock.coordinator.postgres

import java.io.IOException

import scala.annotation.tailrec
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

import io.interlock.coordinator._
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory

/** Publishes the ratified commits of a batch, in order. */
final private[postgres] class Publishing(
    context: StoreContext,
    log: TableLog,
    tail: LogTail,
    requests: Seq[CommitRequest]
) {
  import Publishing._

  /** @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if no commit of the batch could be published
    */
  def apply(state: TableState, reply: Reply, contents: Seq[CommitContent]): Seq[CommitOutcome] = {
    val ratified = reply.commits.map(_.txnId).toSet
    val outcomes = requests.zip(contents).foldLeft(Vector.empty[CommitOutcome]) {
      case (done, (request, content)) =>
        done :+ (done.lastOption match {
          case Some(unknown: Unknown) => unknown
          case Some(_: Taken) => Taken(Seq.empty)
          case _ if !ratified.contains(request.txnId) => Taken(Seq.empty)
          case _ => publish(state, request, content, isFirst = done.isEmpty)
        })
    }
    remember(state, outcomes)
    outcomes
  }

  private def publish(
      state: TableState,
      request: CommitRequest,
      content: CommitContent,
      isFirst: Boolean
  ): CommitOutcome =
    Try(placed(request, content, isFirst)) match {
      case Success(Some(file)) => Committed(request.version, file)
      case Success(None) =>
        overtaken(state, Ratified(request.version, request.txnId, None), isFirst)
      case Failure(e) => Unknown(e) // it is ratified: the next writer may publish it
    }

  /** The commit's file; none if another commit has the version. */
  private def placed(
      request: CommitRequest,
      content: CommitContent,
      isFirst: Boolean
  ): Option[FileStatus] = {
    // A look takes its time on a remote storage, and the last one came just before the first commit.
    val isLookedAt = isFirst && !LogFolder.isLocal(log)
    val publication = tried(request.version, MostTries) {
      if (!isLookedAt) request.requireSameTable(log)
      context.publisher.publish(log, request.version, content, request.whenSeen)
    }
    publication match {
      case Published(file) => Some(file)
      case Foreign(file) =>
        Option.when(tail.txnAt(request.version).contains(request.txnId))(file)
    }
  }

  @tailrec private def tried(version: Long, tries: Int)(publish: => Publication): Publication = {
    val publication =
      try Right(publish)
      catch { case e: IOException if tries > 1 => Left(e) }
    publication match {
      case Right(found) => found
      case Left(e) =>
        logger.warn(s"Version $version of ${log.path} is tried again: ${e.getMessage}")
        if (Pause(PauseMillis)) tried(version, tries - 1)(publish) else throw e
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
    if (outcomes.forall(_.isInstanceOf[Committed]))
      outcomes.lastOption.collect { case Committed(version, file) =>
        val own = LastCommit(version, requests.last.txnId, requests.last.newTableId, file)
        context.states.put(log.path, state.copy(own = Some(own)))
      }: Unit
}

private object Publishing {
  private val logger = LoggerFactory.getLogger(classOf[Publishing])
  private val MostTries = 3
  private val PauseMillis = 50L
}
