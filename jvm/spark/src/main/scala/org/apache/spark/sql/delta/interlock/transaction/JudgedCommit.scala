package org.apache.spark.sql.delta.interlock.transaction

import scala.annotation.tailrec

import io.interlock.coordinator.{CommitQueue, CommitWithdrawnException}
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.commits.CommitBackoff
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.log.{CheckpointLag, MissedCommits}
import org.apache.spark.sql.delta.interlock.transaction.CommitState.Judged
import org.apache.spark.sql.delta.util.FileNames

/** A commit under a policy on its way through the queue. It is judged while it waits for its turn,
  * and then against the commits that were made meanwhile.
  */
final private[transaction] class JudgedCommit(
    transaction: OpenTransaction,
    queue: CommitQueue,
    commit: GovernedCommit,
    rounds: JudgingRounds,
    winners: WinnerReader
) {
  private val table = transaction.table

  /** Tries to commit until the commit is made or loses. If commits after the last version in the
    * log are withdrawn, it starts again from there.
    *
    * @param send
    *   lets Delta try to commit, from a version on
    */
  def commit[A](version: Long, info: CurrentTransactionInfo, level: IsolationLevel)(
      send: (Long, CurrentTransactionInfo) => A
  ): A = {
    val unjudged = Judged(version, info, transaction.preCommitLogSegment, rounds.skipped)
    val gate = tried(info, level)

    def judgeAnewIfLost(): Unit =
      if (soFar.exists(isLost)) {
        queue.startOver()
        takeUp(unjudged)
      }

    @tailrec
    def nthTry(number: Int): A = {
      takeUp(soFar.getOrElse(unjudged))
      startOverIfLost(version)
      transaction.times.in(TimedPhase.Turn) {
        takeTurn(gate, level, judgeAnewIfLost _) {
          startOverIfLost(version)
          judgeAnewIfLost()
          queue.catchUp(soFar.get.next)
        }
      }
      val made =
        try {
          judgeAnewIfLost()
          val judged = soFar.get
          viewFrom(judged.next): Unit
          Some(send(judged.next, judged.info))
        } catch {
          case _: CommitWithdrawnException => None
          case _: DeltaConcurrentModificationException if !isJudgedByLog => None
        } finally queue.passTurn()
      made match {
        case Some(committed) => committed
        case None =>
          transaction.times.in(TimedPhase.Turn) {
            val isRace = !queue.isTakingTurns
            if (isRace) gate.loseRace()
            CommitBackoff.pause(
              transaction.session,
              table.name,
              number,
              isRace = isRace && !gate.hasTurn
            )
          }
          nthTry(number + 1)
      }
    }
    try nthTry(1)
    finally gate.passTurn()
  }

  /** Tells a statement that may run again what it claims if this commit loses. */
  def tried(info: CurrentTransactionInfo, level: IsolationLevel): ClaimGate = {
    val gate = new ClaimGate(transaction, queue, commit, info, level)
    ClaimingStatement.current.foreach(_.tries(gate))
    gate
  }

  /** @param judgeAnewIfLost
    *   called before the commit is judged against commits that may be of another log
    * @param catchUp
    *   called after others have committed while this one waited
    */
  @tailrec private def takeTurn(
      gate: ClaimGate,
      level: IsolationLevel,
      judgeAnewIfLost: () => Unit
  )(catchUp: => Unit): Unit = {
    if (gate.await()) catchUp
    queue.takeTurn(() => judgeAhead(level, judgeAnewIfLost), () => isAheadOfCheckpoints)
    val isClosed =
      try gate.isClosed
      catch {
        case failed: Throwable =>
          queue.passTurn()
          throw failed
      }
    if (isClosed) {
      queue.passTurn()
      takeTurn(gate, level, judgeAnewIfLost)(catchUp)
    }
  }

  private def isAheadOfCheckpoints: Boolean =
    CheckpointLag.isTooLong(
      transaction.session,
      table.snapshot,
      soFar.get.next - 1,
      queue.isTaken
    )

  /** Whether the commit was sent or waits for its turn, and is not only checked. */
  def isCommitting: Boolean = soFar.nonEmpty

  /** The commits from a version on, from memory if this process made the last of them.
    *
    * @param list
    *   Delta's listing of them
    */
  def missedSince(version: Long)(list: => Seq[FileStatus]): Seq[FileStatus] = {
    // Another process made the version.
    if (!queue.hasTurn) throw new CommitWithdrawnException(version)
    startOverIfLost(version)
    val view = viewFrom(version)
    if (view.reachesEnd) {
      val files = view.commits.map(_.file)
      expect(new MissedCommits(table.log, view.commits), files)
      files
    } else {
      val files = transaction.times.in(TimedPhase.Winners)(list)
      if (files.isEmpty) {
        // No commit has the version: the log ends before the commits that the queue knows.
        queue.startOver()
        viewFrom(version): Unit
      }
      winners.expect(new MissedCommits(
        table.log,
        view.commits.filter(_.isThere),
        files,
        queue.learn(view.generation, _)
      ))
      files
    }
  }

  /** Judges the commit against others, and remembers the result up to the last winner that is in
    * the log.
    *
    * @param first
    *   the version that the commit wanted
    * @param files
    *   the winners' files; a winner that is on its way has length 0
    */
  def resolve(
      info: CurrentTransactionInfo,
      first: Long,
      files: Seq[FileStatus],
      level: IsolationLevel
  ): CurrentTransactionInfo = {
    def behind(judged: CurrentTransactionInfo, others: Seq[FileStatus]) =
      if (others.isEmpty) judged else rounds.judge(judged, first, others, level)
    val (there, onTheirWay) = files.span(_.getLen > 0)
    val judged = behind(info, there)
    soFar.filter(_.next == first && judged.idempotentCommitAlreadyLandedAt.isEmpty)
      .foreach(before =>
        transaction.state = before.copy(
          next = first + there.size,
          info = judged,
          segment = there.foldLeft(before.segment)(appended),
          skipped = rounds.skipped
        )
      )
    behind(judged, onTheirWay)
  }

  private def soFar: Option[Judged] = Some(transaction.state).collect { case judged: Judged =>
    judged
  }

  private def takeUp(judged: Judged): Unit = {
    transaction.state = judged
    transaction.preCommitLogSegment = judged.segment
    rounds.skipped = judged.skipped
  }

  /** The commits that the queue knows from a version on.
    *
    * @throws CommitWithdrawnException
    *   if a commit before that version, against which this one was judged, was withdrawn: another
    *   may have its version now
    */
  private def viewFrom(version: Long): CommitQueue.View = {
    val view = queue.view(version)
    if (
      soFar.exists(judged => judged.next < version && !judged.generation.contains(view.generation))
    )
      throw new CommitWithdrawnException(version)
    soFar.foreach(judged => transaction.state = judged.copy(generation = Some(view.generation)))
    view
  }

  /** Whether all commits that this one was judged against were made. Waits for those on their way.
    */
  private def isJudgedByLog: Boolean =
    soFar.flatMap(_.generation).forall(queue.isSettled)

  /** Judges the commit, while it waits for its turn, against new commits in the log.
    *
    * @return
    *   whether there were any
    */
  private def judgeAhead(level: IsolationLevel, judgeAnewIfLost: () => Unit): Boolean =
    DeltaTableV2.withEnrichedUnsupportedTableException(table.catalogTable) {
      val before = soFar.get
      val found = queue.settled(before.next)
      if (found.nonEmpty && !transaction.isOfSameLog(queue, before.next).contains(true)) {
        judgeAnewIfLost()
        transaction.refuseAnother()
      }
      if (found.nonEmpty && soFar.exists(_ eq before)) {
        val files = found.map(_.file)
        expect(new MissedCommits(table.log, found), files)
        resolve(before.info, before.next, files, level): Unit
      }
      soFar.exists(_.next > before.next)
    }

  private def expect(commits: MissedCommits, files: Seq[FileStatus]): Unit = {
    winners.expect(commits)
    transaction.preCommitLogSegment = files.foldLeft(transaction.preCommitLogSegment)(appended)
  }

  private def appended(segment: LogSegment, file: FileStatus): LogSegment =
    SnapshotManagement.appendCommitToLogSegment(segment, file, FileNames.deltaVersion(file))

  /** Whether the last commit that this one was judged against is gone, because the log was put back
    * to an earlier state; another commit may have its version now.
    */
  private def isLost(judged: Judged): Boolean =
    judged.next > table.snapshot.version + 1 && !table.has(judged.segment.deltas.last)

  /** Lets the queue forget its commits if the log was put back to an earlier state: if they do not
    * follow what this one has read, or the next commit to judge against is gone.
    */
  private def startOverIfLost(next: Long): Unit = {
    transaction.startOverIfOther(queue, next)
    queue.at(next).filter(_.isThere).foreach(known =>
      if (!table.has(known.file)) queue.startOver()
    )
  }
}
