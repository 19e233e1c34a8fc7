package io.interlock.coordinator

import java.io.IOException
import java.util.UUID

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.{Failure, Success, Try}

import io.delta.storage.LogStore

/** The commit of an atomic block to tables whose commits the file system orders:
  *
  *   1. The content of each table's commit is staged beside its log.
  *   1. Each table gets a version that reserves the next one ([[Prepared]]), in a fixed order. Who
  *      wants that one has to read this one first, and waits.
  *   1. It looks whether tables that were only read have moved on.
  *   1. One file is made: the [[Decision]]. From then on the block is committed.
  *   1. Each content becomes the reserved version. If this process ends before, the next writer of the
  *      table does it.
  *
  * A block that stays undecided is aborted by who waits for it.
  */
final private[coordinator] class FileBlock(
    store: FileSystemStore,
    publisher: Publisher,
    logStores: TableLog => LogStore,
    parts: Seq[TogetherPart]
) {
  import FileBlock._

  private val id = UUID.randomUUID.toString
  private val (changed, read) = parts.partition(_.request.nonEmpty)
  private val home = changed.head.log
  private val decision = new Decision(home, id, logStores(home))

  def run(): Seq[CommitOutcome] = {
    // While it has prepared nothing, nobody waits for it.
    parts.foreach(part => store.settle(part.log, part.head))
    val staged = changed.foldLeft(Vector.empty[Staged]) { (done, next) =>
      try done :+ stage(next)
      catch {
        case failed: Throwable =>
          discard(done)
          throw failed
      }
    }
    prepare(staged).orElse(decide(staged)).getOrElse(publish(staged))
  }

  private def stage(next: TogetherPart): Staged = {
    val (log, request) = (next.log, next.request.get)
    val stamped = CommitLines.stamped(request.lines, Stamp.filesystem(request.version)).buffered
    val firstLine = stamped.head
    val content = publisher.stageInFile(log, request.version, request.txnId, stamped)
    Staged(log, request, content, firstLine)
  }

  /** @return
    *   the outcomes if it cannot be committed
    */
  private def prepare(staged: Seq[Staged]): Option[Seq[CommitOutcome]] = {
    val outcomes = staged.to(LazyList).map(prepare(_))
    val refused = outcomes.collectFirst { case Some(outcome) => outcome }
      .orElse(Try(read.exists(hasMoved)).fold(e => Some(Failed(e)), Option.when(_)(Taken(Nil))))
    refused.map { outcome =>
      // Only this call would commit it: who waits for it need not wait any more.
      val isUnseen = outcomes.head.exists(_.isInstanceOf[Taken])
      if (!isUnseen) Try(decision.decide(isCommitted = false))
      giveUp(staged, outcome)
    }
  }

  /** @return
    *   why the part's version could not be made
    */
  private def prepare(part: Staged): Option[CommitOutcome] = {
    val elsewhere = Option.when(part.log.path != home.path)(home.path)
    val request = Prepared(elsewhere, changed.head.head + 1, id, part.content)
      .before(part.request, part.firstLine)
    Try(store.commit(part.log, Seq(request)).head) match {
      case Success(Committed(version, _)) if version == request.version => None
      case Success(other: Committed) => Some(Failed(new IllegalStateException(other.toString)))
      case Success(Taken(_)) => Some(Taken(Nil))
      case Success(Failed(cause)) => Some(Failed(cause))
      case Success(Unknown(cause)) => Some(Failed(cause))
      case Failure(cause) => Some(Failed(cause))
    }
  }

  private def hasMoved(part: TogetherPart): Boolean =
    LogFolder.of(part.log).status(LogFolder.commitName(part.head + 1)).nonEmpty

  private def giveUp(staged: Seq[Staged], outcome: CommitOutcome): Seq[CommitOutcome] = {
    discard(staged)
    staged.map(_ => outcome)
  }

  private def discard(staged: Seq[Staged]): Unit =
    staged.foreach(part => publisher.discard(part.log, part.content))

  private def decide(staged: Seq[Staged]): Option[Seq[CommitOutcome]] = {
    def reached(phase: CommitPhase): Unit =
      staged.foreach(part => CommitPhases.reached(phase, part.log, part.request.version))
    val decided = Try {
      reached(CommitPhase.Ratifying)
      decision.decide(isCommitted = true)
    }
    def unlessDecided(failed: Throwable) = Try(decision.decide(isCommitted = false)) match {
      case Success(true) => None
      case Success(false) => Some(giveUp(staged, Failed(failed)))
      case Failure(_) => Some(staged.map(_ => Unknown(failed)))
    }
    val refused = decided match {
      case Success(true) => None
      case Success(false) => Some(giveUp(staged, Taken(Nil)))
      // What this call may have decided is not taken back, only asked for.
      case Failure(failed) => unlessDecided(failed)
    }
    if (refused.isEmpty) Try(reached(CommitPhase.Ratified)): Unit
    refused
  }

  private def publish(staged: Seq[Staged]): Seq[CommitOutcome] = {
    val outcomes = staged.map(publish(_, MostTries))
    if (outcomes.forall(_.isInstanceOf[Committed])) decision.forget()
    outcomes
  }

  @tailrec private def publish(part: Staged, tries: Int): CommitOutcome = {
    import part._
    Try(publisher.publish(log, request.version, content, request.whenSeen)) match {
      case Success(Published(file)) =>
        store.made(log, request, file)
        Committed(request.version, file)
      case Success(Foreign(file)) =>
        Unknown(LastCommit.of(request, request.version, file).overwritten(log))
      case Failure(unknown: PublishUnknown) if unknown.getCause.isInstanceOf[IOException] =>
        Unknown(unknown)
      case Failure(failed) =>
        store.lookedUp(log, request) match { // another process may have published it
          case Some(outcome) => outcome
          case None if tries > 1 => publish(part, tries - 1)
          case None => Unknown(failed)
        }
    }
  }
}

private[coordinator] object FileBlock {
  private val BetweenLooks = 50.millis
  private val MostTries = 3

  final private case class Staged(
      log: TableLog,
      request: CommitRequest,
      content: StagedFile,
      firstLine: String
  )

  /** If a version has prepared a part of a block, waits until the block is decided, and publishes the
    * part.
    *
    * @throws IOException
    *   if that is not possible
    */
  def settle(
      log: TableLog,
      version: Long,
      publisher: Publisher,
      logStores: TableLog => LogStore,
      patience: FiniteDuration
  ): Unit = if (version >= 0) {
    val folder = LogFolder.of(log)
    def isFollowed = folder.status(LogFolder.commitName(version + 1)).nonEmpty
    folder.firstLine(version).flatMap(Prepared.of).filterNot(_ => isFollowed).foreach { prepared =>
      val home = prepared.home.fold(log)(TableLog(_, log.conf))
      val decision = new Decision(home, prepared.id, logStores(home))
      val deadline = patience.fromNow
      @tailrec def isCommitted(): Boolean = Try(decision.read()).toOption.flatten match {
        case Some(decided) => decided
        case None if isFollowed => false
        case None if deadline.isOverdue() => decide()
        case None =>
          Thread.sleep(BetweenLooks.toMillis)
          isCommitted()
      }
      // A block whose home was dropped or moved is over.
      def decide() = takesPart(prepared, home) && {
        publisher.requireExclusion(home)
        decision.decide(isCommitted = false)
      }
      if (isCommitted() && !isFollowed)
        try publisher.publish(log, version + 1, prepared.content): Unit
        catch { case _: IOException if isFollowed => }
    }
  }

  /** Whether the log that a block names as its home is that of one of its tables. */
  private def takesPart(prepared: Prepared, home: TableLog): Boolean =
    LogFolder.of(home).firstLine(prepared.homeVersion).flatMap(Prepared.of)
      .exists(_.id == prepared.id)
}
