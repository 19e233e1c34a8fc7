package org.apache.spark.sql.delta.interlock.commit

import io.delta.storage.commit.Commit
import io.interlock.coordinator._
import io.interlock.spark.properties.Exclusive
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient
import org.apache.spark.sql.delta.interlock.log.{Checksums, FreshSnapshot}
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{CurrentTransactionInfo => Info}

/** A commit that is in the log.
  *
  * @param segment
  *   the log before it
  */
final private[interlock] case class Made(
    attempt: Attempt,
    segment: LogSegment,
    commit: Commit,
    checksum: Option[VersionChecksum]
) {

  /** What Delta's `writeCommitFile` returns. */
  def written: (Option[VersionChecksum], Commit, Info) = (checksum, commit, attempt.info)
}

/** Hands commits in to the queue of their table, with their checksums.
  *
  * @param derive
  *   Delta's checksum of a commit that follows the version which was read
  * @param convert
  *   what Delta does with a commit before it writes it, as for UniForm
  * @param whenMade
  *   called when a commit is in the log
  */
final private[interlock] class Send(
    statement: Statement,
    val queue: CommitQueue,
    audit: CommitAudit,
    derive: (Long, Info) => Option[VersionChecksum],
    convert: (Long, Info) => Unit,
    whenMade: () => Unit
) {
  private val table = statement.table
  private val times = statement.times

  /** The commit coordinator that Delta knows: it lists the log by it, and commits by it what is not
    * judged.
    */
  val client: TableCommitCoordinatorClient = {
    val own = new InterlockCommitCoordinatorClient(queue, () => table.isThere, () => made())
    new TableCommitCoordinatorClient(own, table.log.logPath, Map.empty, table.conf, table.log.store)
  }

  private def made(): Unit = {
    statement.isMade = true
    whenMade()
  }

  /** Hands in a commit that has the turn, passes the turn on, and waits for the outcome.
    *
    * @return
    *   None if the version is another commit's, or if a commit that it was judged against has failed
    * @throws CommitUnknownException
    *   if nobody can say whether it was made
    */
  def apply(attempt: Attempt): Option[Made] = {
    val ready = prepare(attempt)
    ready.when(times.in(TimedPhase.Store)(queue.submit(ready.request, attempt.generation.get)))
  }

  /** Prepares a commit that has the turn. */
  private def prepare(attempt: Attempt): Ready = prepare(attempt, checksumOf(attempt))

  /** Prepares a commit that is made together with those of other tables, and has the turn. */
  def prepareTogether(attempt: Attempt): Ready =
    if (queue.versionsTogether == 1) prepare(attempt)
    else {
      def before = table.segment(attempt.winners)
      val reserving = new FileStatus(0, false, 1, 0, 0, table.file(attempt.next))
      val behind = attempt.behindReserved(reserving)
      prepare(behind, checksum(behind.next, behind.info, before))
    }

  private def prepare(attempt: Attempt, checksum: => Option[VersionChecksum]): Ready = {
    table.refuseIfGone()
    convert(attempt.next, attempt.info)
    audit.sent(attempt.info)
    new Ready(attempt, times.in(TimedPhase.Checksum)(checksum))
  }

  /** A commit that can be handed in. */
  final class Ready private[Send] (attempt: Attempt, checksum: Option[VersionChecksum]) {
    private val file = checksum.fold[Checksums.Prepared](Checksums.NoChecksum)(
      times.in(TimedPhase.Checksum)(
        Checksums.prepare(statement.session, table.log, attempt.next, _)
      )
    )
    private val since = System.currentTimeMillis()

    val request: CommitRequest = CommitRequest(
      attempt.next,
      statement.txnId,
      table.snapshot.metadata.id,
      attempt.info.metadata.id,
      attempt.info.finalActionsToCommit.iterator.map(_.json),
      () => table.isThere,
      whenSeen = () => file.write(),
      Exclusive.of(table.properties)
    )

    /** To be called first for all commits that are made together: from then on its files are kept,
      * whatever fails.
      */
    def note(answer: Either[CommitQueue.Withdrawn.type, CommitOutcome]): Unit = answer match {
      case Right(_: Committed) => statement.isMade = true
      case _ =>
    }

    /** What becomes of it, by the queue's answer. */
    def when(answer: => Either[CommitQueue.Withdrawn.type, CommitOutcome]): Option[Made] = {
      val file =
        try made(answer)
        catch {
          case failed: Throwable =>
            discard()
            throw failed
        }
      if (file.isEmpty) discard()
      file.map(keep)
    }

    private def made(answer: Either[CommitQueue.Withdrawn.type, CommitOutcome]) = answer match {
      case Right(Committed(_, there)) => Some(there)
      case Right(Taken(_)) | Left(CommitQueue.Withdrawn) => None
      case Right(Failed(cause)) => throw cause
      case Right(Unknown(cause)) => throw statement.unknown(attempt.next, cause)
    }

    /** To be called if it is not handed in. */
    def discard(): Unit = {
      checksum.foreach(Checksums.forget(queue, _))
      file.discard()
    }

    private def keep(there: FileStatus): Made = {
      Send.this.made()
      times.in(TimedPhase.Checksum)(file.write())
      checksum.foreach(Checksums.remember(there, _))
      val segment = table.segment(attempt.winners.map(arrived))
      times.in(TimedPhase.Snapshot)(FreshSnapshot.add(table.log, segment, there, checksum, since))
      val time = attempt.info.commitInfo.flatMap(_.inCommitTimestamp)
        .getOrElse(there.getModificationTime)
      Made(attempt, segment, new Commit(attempt.next, there, time), checksum)
    }
  }

  /** The commit has the turn, so the checksum of the one before it may be in memory already. */
  private def checksumOf(attempt: Attempt): Option[VersionChecksum] = {
    import attempt.{info, next}
    def derived =
      if (attempt.winners.isEmpty) derive(next, info)
      else checksum(next, info, table.segment(attempt.winners))
    Checksums.derive(queue, next, attempt.generation)(_.fold(derived)(over(_, next, info)))
  }

  /** The checksum of a commit, derived from that of the log before it. Delta would use that one
    * without proof, and would not carry it over commits.
    */
  def checksum(version: Long, info: Info, before: LogSegment): Option[VersionChecksum] =
    Checksums.read(table.log, before).flatMap(over(_, version, info))

  private def over(before: VersionChecksum, version: Long, info: Info) = {
    val session = statement.session
    val withFiles = Snapshot.shouldIncludeAddFilesInCrc(session, table.snapshot, info.metadata)
    Checksums.over(session, table.log, before, version, info, withFiles)
  }

  /** The file of a winner that was on its way, and is there now. */
  private def arrived(file: FileStatus): FileStatus =
    if (file.getLen > 0) file
    else
      queue.at(FileNames.deltaVersion(file)).map(_.file).filter(_.getLen > 0)
        .getOrElse(table.status(file))
}
