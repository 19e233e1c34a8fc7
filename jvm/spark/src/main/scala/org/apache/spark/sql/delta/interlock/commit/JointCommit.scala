package org.apache.spark.sql.delta.interlock.commit

import scala.annotation.tailrec

import io.interlock.coordinator.{CommitQueue, CommitUnknownException}

/** Commits to several tables, all or none of them:
  *
  *   1. It waits for its turn in the queue of each table, in the order of their paths.
  *   1. With all turns, each commit is judged as [[CommitLoop]] does, and what was read of the other
  *      tables too.
  *   1. The store makes all commits, unless somebody has committed to one of the tables meanwhile:
  *      then it begins again.
  *
  * @param changed
  *   the commits; their tables have the same store
  * @param read
  *   the reads of tables that are not changed, in that store as well
  */
final private[interlock] class JointCommit(changed: Seq[CommitLoop], read: Seq[CommitLoop]) {
  private val loops = (changed ++ read).sortBy(_.table.log.logPath.toString)

  /** The commit that has lost or failed, if it was one of them. */
  var failed: Option[CommitLoop] = None

  /** @return
    *   the commits, by their loops
    * @throws org.apache.spark.sql.delta.DeltaConcurrentModificationException
    *   if one of them loses; then none is made
    */
  def run(): Map[CommitLoop, Made] =
    try run(loops.map(_.first), tries = 1)
    finally loops.foreach(_.waiting.end())

  @tailrec private def run(attempts: Seq[Attempt], tries: Int): Map[CommitLoop, Made] = {
    val (judged, made) =
      try {
        val judged = each(takeTurns(attempts)) { (loop, turn) =>
          loop.judgeAll(loop.log.current(turn))
        }
        judged -> send(naming(atOneTime(judged)))
      } finally loops.foreach(_.queue.passTurn())
    if (made.nonEmpty) made
    else {
      loops.head.waiting.afterLostRace(tries)
      run(each(judged)((loop, attempt) => loop.log.current(attempt.lastInLog)), tries + 1)
    }
  }

  /** Waits for the claims on all tables before it takes a turn: others wait for the turns that it has.
    */
  @tailrec private def takeTurns(attempts: Seq[Attempt]): Seq[Attempt] = {
    val open = each(attempts) { (loop, attempt) =>
      loop.log.startOverIfOther(attempt)
      loop.waiting.behindClaims(attempt)
    }
    val turns = each(open)((loop, attempt) => loop.waiting.inQueue(attempt)(loop.judgeAhead))
    if (!loops.exists(_.waiting.isClosed)) turns
    else {
      loops.foreach(_.queue.passTurn())
      takeTurns(turns)
    }
  }

  private def each(attempts: Seq[Attempt])(work: (CommitLoop, Attempt) => Attempt): Seq[Attempt] =
    loops.zip(attempts).map { case (loop, attempt) => blaming(loop)(work(loop, attempt)) }

  private def blaming[A](loop: CommitLoop)(work: => A): A =
    try work
    catch {
      case e: Throwable =>
        failed = Some(loop)
        throw e
    }

  /** The commits with the same time, so that TIMESTAMP AS OF finds all of them or none. A version
    * that reserves theirs has an earlier one.
    */
  private def atOneTime(judged: Seq[Attempt]): Seq[Attempt] = {
    val last = loops.head.queue.versionsTogether - 1
    val times = judged.flatMap(_.info.commitInfo).flatMap(_.inCommitTimestamp).map(_ + last)
    judged.map { attempt =>
      val timed = attempt.info.commitInfo.map(info =>
        info.copy(inCommitTimestamp = info.inCommitTimestamp.map(_ => times.max))
      )
      attempt.copy(info = attempt.info.copy(commitInfo = timed))
    }
  }

  /** The commits, of which each names the others' versions. */
  private def naming(timed: Seq[Attempt]): Seq[Attempt] = {
    val versions = loops.zip(timed).collect {
      case (loop, attempt) if changed.contains(loop) =>
        loop -> (attempt.next + loop.queue.versionsTogether - 1)
    }
    loops.zip(timed).map { case (loop, attempt) =>
      val others = versions.collect {
        case (other, version) if other ne loop => other.table.snapshot.metadata.id -> version
      }
      val actions = Siblings.actions(others) ++ attempt.info.actions
      attempt.copy(info = attempt.info.copy(actions = actions))
    }
  }

  /** @return
    *   nothing if they were not made
    */
  private def send(judged: Seq[Attempt]): Map[CommitLoop, Made] = {
    read.foreach(loop => blaming(loop)(loop.table.refuseIfGone()))
    val attempts = loops.zip(judged)
    val ready = attempts.filter { case (loop, _) => changed.contains(loop) }
      .foldLeft(Vector.empty[(CommitLoop, Send#Ready)]) { case (done, (loop, attempt)) =>
        try done :+ (loop -> blaming(loop)(loop.send.prepareTogether(attempt)))
        catch {
          case e: Throwable =>
            done.foreach(_._2.discard())
            throw e
        }
      }
    val commits = ready.toMap
    val parts = attempts.map { case (loop, attempt) =>
      CommitQueue.Part(
        loop.queue,
        commits.get(loop).map(_.request),
        loop.table.snapshot.metadata.id,
        attempt.next - 1,
        attempt.generation.get
      )
    }
    val outcomes = CommitQueue.submitTogether(parts)
    val answers = ready.indices.map(n => outcomes.map(_(n)).toRight(CommitQueue.Withdrawn))
    ready.zip(answers).foreach { case ((_, commit), answer) => commit.note(answer) }
    val made = ready.zip(answers).map { case ((loop, commit), answer) =>
      loop -> caught(commit.when(answer))
    }
    // An outcome that is not known says most.
    made.sortBy { case (_, found) => !found.left.exists(_.isInstanceOf[CommitUnknownException]) }
      .flatMap { case (loop, found) =>
        blaming(loop)(found.fold(throw _, identity)).map(loop -> _)
      }.toMap
  }

  /** Also catches an interrupt, since a commit that others are made with must be kept. */
  private def caught[A](work: => A): Either[Throwable, A] =
    try Right(work)
    catch { case failed: Throwable => Left(failed) }
}
