package io.interlock.coordinator

import java.io.IOException
import java.util.UUID

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.util.control.NonFatal
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
  * A block that is not decided for [[FileBlock.Patience]] is aborted by who waits for it.
  */
final private[coordinator] class FileBlock(
    store: FileSystemStore,
    publisher: Publisher,
    logStores: TableLog => LogStore,
    parts: Seq[TogetherPart]
) {
  import FileBlock._

  private val id = UUID.randomUUID.toString
  private val changed =
    for (part <- parts; request <- part.request) yield Changed(part.log, request)
  private val read = parts.filter(_.request.isEmpty)
  private val home = changed.head.log
  private val decision = new Decision(home, id, logStores(home))

  def run(): Seq[CommitOutcome] = {
    // While it has prepared nothing, nobody waits for it.
    read.foreach(part => settle(part.log, part.head, publisher, logStores))
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

  private def stage(next: Changed): Staged = {
    import next.{log, request}
    val stamped = CommitLines.stamped(request.lines, Stamp.filesystem(request.version)).buffered
    val firstLine = stamped.head
    val content = publisher.stageInFile(log, request.version, request.txnId, stamped)
    Staged(log, request, content, firstLine)
  }

  /** @return
    *   the outcomes if it cannot be committed
    */
  private def prepare(staged: Seq[Staged]): Option[Seq[CommitOutcome]] = {
    val refused = staged.iterator.map { part =>
      val request = Prepared(home.path, id, part.content).before(part.request, part.firstLine)
      Try(store.commit(part.log, Seq(request)).head) match {
        case Success(Committed(version, _)) if version == request.version => None
        case Success(other: Committed) => Some(Failed(new IllegalStateException(other.toString)))
        case Success(Taken(_)) => Some(Taken(Nil))
        case Success(Failed(cause)) => Some(Failed(cause))
        case Success(Unknown(cause)) => Some(Failed(cause))
        case Failure(cause) => Some(Failed(cause))
      }
    }.collectFirst { case Some(outcome) => outcome }
      .orElse(Option.when(read.exists(hasMoved))(Taken(Nil)))
    refused.map(giveUp(staged, _))
  }

  private def hasMoved(part: TogetherPart): Boolean =
    LogFolder.of(part.log).status(LogFolder.commitName(part.head + 1)).nonEmpty

  /** Nobody can commit it any more: only this call would. */
  private def giveUp(staged: Seq[Staged], outcome: CommitOutcome): Seq[CommitOutcome] = {
    Try(decision.decide(isCommitted = false))
    discard(staged)
    staged.map(_ => outcome)
  }

  private def discard(staged: Seq[Staged]): Unit =
    staged.foreach(part => publisher.discard(part.log, part.content))

  private def decide(staged: Seq[Staged]): Option[Seq[CommitOutcome]] = {
    def reached(phase: CommitPhase): Unit =
      staged.foreach(part => CommitPhases.reached(phase, part.log, part.request.version))
    try {
      reached(CommitPhase.Ratifying)
      if (!decision.decide(isCommitted = true)) Some(giveUp(staged, Taken(Nil)))
      else {
        Try(reached(CommitPhase.Ratified))
        None
      }
    } catch {
      case unknown: PublishUnknown => Some(staged.map(_ => Unknown(unknown)))
      case NonFatal(failed) => Some(giveUp(staged, Failed(failed)))
    }
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
      case Failure(failed) =>
        made(part) match {
          case Some(outcome) => outcome
          case None if tries > 1 => publish(part, tries - 1)
          case None => Unknown(failed)
        }
    }
  }

  /** The outcome if another process has published it. */
  private def made(part: Staged): Option[CommitOutcome] = {
    import part._
    val folder = LogFolder.of(log)
    Try(folder.status(LogFolder.commitName(request.version)).filter(file =>
      folder.firstLine(file).flatMap(CommitLines.txnIdOf).contains(request.txnId)
    ).map(Committed(request.version, _))).toOption.flatten
  }
}

private[coordinator] object FileBlock {

  /** How long who waits for a block lets it be undecided. */
  val Patience: FiniteDuration = 10.seconds
  private val BetweenLooks = 50.millis
  private val MostTries = 3

  final private case class Changed(log: TableLog, request: CommitRequest)
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
      logStores: TableLog => LogStore
  ): Unit = if (version >= 0) {
    val folder = LogFolder.of(log)
    def isFollowed = folder.status(LogFolder.commitName(version + 1)).nonEmpty
    folder.firstLine(version).flatMap(Prepared.of).filterNot(_ => isFollowed).foreach { prepared =>
      val home = TableLog(prepared.home, log.conf)
      val decision = new Decision(home, prepared.id, logStores(home))
      val deadline = Patience.fromNow
      @tailrec def isCommitted(): Boolean = decision.read() match {
        case Some(decided) => decided
        case None if isFollowed => false
        case None if deadline.isOverdue() => decision.decide(isCommitted = false)
        case None =>
          Thread.sleep(BetweenLooks.toMillis)
          isCommitted()
      }
      if (isCommitted() && !isFollowed)
        try publisher.publish(log, version + 1, prepared.content): Unit
        catch { case _: IOException if isFollowed => }
    }
  }
}
