package io.interlock.coordinator.postgres

import scala.annotation.tailrec

import io.interlock.coordinator._
import org.apache.hadoop.fs.FileStatus

/** Brings a table's log and its row in the database together. */
final private[postgres] class LogTail(context: StoreContext, log: TableLog) {
  import LogTail._

  private val database = context.database
  private val folder = LogFolder.of(log)

  /** The transaction in the log at a version: "" if the commit there has none. */
  def txnAt(version: Long): Option[String] =
    folder.firstLine(version).map(line => CommitLines.txnIdOf(line).getOrElse(""))

  /** Where a commit of ours is. The log may have been cleaned of it since. */
  def file(version: Long): FileStatus = folder.status(LogFolder.commitName(version))
    .getOrElse(new FileStatus(0, false, 1, 0, 0, log.file(version)))

  /** A commit of the log with its lines, if it is small. */
  def body(version: Long, content: Option[CommitContent]): Option[CommitBody] = content match {
    case Some(known: InMemory) => folder.status(LogFolder.commitName(version))
        .map(CommitBody(version, _, Drafts.reading(log, known)(_.toVector)))
    case _ => folder.body(version)
  }

  /** The last version in the log; -1 for none. */
  def lastVersion(): Long =
    folder.names().collect { case CommitName(digits) => digits.toLong }
      .maxOption.getOrElse(-1L)

  /** Compares ratified commits with the log, and publishes those that it lacks, in order, up to the
    * first that is not in its place.
    */
  @tailrec def settle(
      state: TableState,
      commits: Seq[Ratified],
      done: Vector[Ratified] = Vector.empty
  ): Settled = commits.headOption match {
    case None => InPlace(done)
    case Some(commit) =>
      if (isInPlace(state, commit)) settle(state, commits.tail, done :+ commit)
      else if (commit.version <= state.published) Contradicted(commit)
      else Overtaken(done, commit)
  }

  /** Tells the database of the foreign commit that stands at a ratified commit's version.
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if that commit is of the database's own lost future
    */
  def revoke(state: TableState, ours: Ratified): TableState = {
    refuseLost(state, ours.version to ours.version)
    state.after(database.revoke(log, state.epoch, ours.version, ours.txnId))
  }

  /** The log is ahead of the database: takes its further commits in, up to version `last`.
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if any of them is of the database's own lost future
    */
  def adopt(state: TableState, last: Long): TableState = {
    val settled = settleAll(state)
    if (settled.head >= last || settled.published < settled.head) settled
    else {
      refuseLost(settled, settled.head + 1 to last)
      settled.after(database.adopt(log, settled.epoch, settled.head, last))
    }
  }

  /** Settles all that is not known to be published, and marks or revokes it. */
  def settleAll(state: TableState): TableState = {
    val reply = database.tail(log)
    val now = state.after(reply)
    settle(now, reply.commits) match {
      case Overtaken(done, ours) => revoke(marked(now, done), ours)
      case InPlace(done) => marked(now, done)
      case _ => now
    }
  }

  private def marked(state: TableState, done: Seq[Ratified]): TableState =
    done.lastOption.fold(state)(last =>
      state.after(database.published(log.path, state.epoch, last.version, last.txnId))
    )

  /** Why a commit that was published is another transaction's now. */
  def replaced(state: TableState, ours: Ratified, theirs: String): CoordinatorException = {
    refuseLost(state, ours.version to ours.version)
    Refusals.overwritten(log, ours, theirs)
  }

  private def refuseLost(state: TableState, versions: Seq[Long]): Unit =
    versions.find(folder.firstLine(_).flatMap(CommitLines.stampOf).exists(state.misses))
      .foreach(version => throw Refusals.restored(log, version, state))

  /** Whether the commit is at its version in the log, now that it was published if it could be. */
  private def isInPlace(state: TableState, commit: Ratified): Boolean =
    txnAt(commit.version) match {
      case Some(found) => found == commit.txnId
      case None => commit.version > state.published && publish(commit)
    }

  private def publish(commit: Ratified): Boolean = {
    val content = commit.content.filter(isWhole)
      .getOrElse(throw Refusals.contentGone(log, commit, commit.content))
    context.publisher.publish(log, commit.version, content) match {
      case _: Published => true
      case _: Foreign => txnAt(commit.version).contains(commit.txnId)
    }
  }

  /** Whether a staged file, which any writer of the table could have changed, is what was ratified. */
  private def isWhole(content: CommitContent): Boolean = content match {
    case _: InMemory => true
    case StagedFile(name, size, sha256) =>
      folder.status(name).exists(_.getLen == size) && folder.sha256(name).sameElements(sha256)
  }
}

private[postgres] object LogTail {
  private val CommitName = """(\d{20})\.json""".r

  /** How ratified commits and the log compare. */
  sealed trait Settled

  /** All are in the log. */
  final case class InPlace(commits: Seq[Ratified]) extends Settled

  /** A foreign commit came to the log before this one; those before it are in the log. */
  final case class Overtaken(before: Seq[Ratified], ours: Ratified) extends Settled

  /** This one was in the log, and is no more. */
  final case class Contradicted(ours: Ratified) extends Settled
}
