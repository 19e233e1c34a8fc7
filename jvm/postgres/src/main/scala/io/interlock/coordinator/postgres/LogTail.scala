package io.interlock.coordinator.postgres

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException

import scala.annotation.tailrec

import io.interlock.coordinator._
import org.apache.hadoop.fs.FileStatus

/** Compares a table's log with its row in the database, and makes the two agree. */
final private[postgres] class LogTail(context: StoreContext, log: TableLog) {
  import LogTail._

  private val database = context.database
  private val folder = LogFolder.of(log)

  /** The transaction id of a version in the log; "" if that commit has none. */
  def txnAt(version: Long): Option[String] =
    folder.firstLine(version).map(line => CommitLines.txnIdOf(line).getOrElse(""))

  /** The file of a commit by this process, which may have been removed from the log since. */
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

  /** Compares ratified commits with the log and publishes the missing ones, in order, up to the
    * first whose version another commit has.
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

  /** Tells the database of the foreign commit that has a ratified commit's version.
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if the database itself ratified that commit before it was
    *   restored
    */
  def revoke(state: TableState, ours: Ratified): TableState = {
    refuseLost(state, ours.version to ours.version)
    state.after(database.revoke(log, state.epoch, ours.version, ours.txnId))
  }

  /** Adds the log's commits after the head to the database, up to version `last`.
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_RESTORED if the database itself ratified one of them before it was
    *   restored
    */
  def adopt(state: TableState, last: Long): TableState = {
    val settled = settleAll(state)
    if (settled.head >= last || settled.published < settled.head) settled
    else {
      refuseLost(settled, settled.head + 1 to last)
      settled.after(database.adopt(log, settled.epoch, settled.head, last))
    }
  }

  /** Publishes all commits that are not known to be published, and marks or revokes them in the
    * database.
    */
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

  /** The error for a published commit whose version another transaction has now. */
  def replaced(state: TableState, ours: Ratified, theirs: String): CoordinatorException = {
    refuseLost(state, ours.version to ours.version)
    Refusals.overwritten(log, ours, theirs)
  }

  private def refuseLost(state: TableState, versions: Seq[Long]): Unit =
    versions.find(folder.firstLine(_).flatMap(CommitLines.stampOf).exists(state.misses))
      .foreach(version => throw Refusals.restored(log, version, state))

  /** Publishes the commit if possible, and returns whether it is at its version in the log. */
  private def isInPlace(state: TableState, commit: Ratified): Boolean =
    txnAt(commit.version) match {
      case Some(found) => found == commit.txnId
      case None => commit.version > state.published && publish(commit)
    }

  private def publish(commit: Ratified): Boolean = commit.content.filter(isWhole) match {
    case Some(content) =>
      LogFolder.requireNoGap(log, commit.version)
      context.publisher.publish(log, commit.version, content) match {
        case _: Published => true
        case _: Foreign => txnAt(commit.version).contains(commit.txnId)
      }
    // Another process that has published the commit meanwhile has deleted the staged file.
    case None => txnAt(commit.version)
        .getOrElse(throw Refusals.contentGone(log, commit, commit.content)) == commit.txnId
  }

  /** Whether a staged file has the ratified content: any writer of the table could have changed it.
    */
  private def isWhole(content: CommitContent): Boolean = content match {
    case _: InMemory => true
    case StagedFile(name, size, sha256) =>
      try
        folder.status(name)
          .exists(file => file.getLen == size && folder.sha256(file).sameElements(sha256))
      catch { case _: FileNotFoundException | _: NoSuchFileException => false } // just deleted
  }
}

private[postgres] object LogTail {
  private val CommitName = """(\d{20})\.json""".r

  /** The result of comparing ratified commits with the log. */
  sealed trait Settled

  /** All commits are in the log. */
  final case class InPlace(commits: Seq[Ratified]) extends Settled

  /** A foreign commit came to the log before this one; those before it are in the log. */
  final case class Overtaken(before: Seq[Ratified], ours: Ratified) extends Settled

  /** This commit was in the log before, and is there no more. */
  final case class Contradicted(ours: Ratified) extends Settled
}
