package io.interlock.coordinator.postgres

import scala.util.Try
import scala.util.control.NonFatal

import io.interlock.coordinator._

/** One batch of consecutive versions of a table: what is asked for it, and what follows from the
  * answer. [[PostgresCommit]] asks.
  */
final private[postgres] class TableBatch(
    context: StoreContext,
    log: TableLog,
    asked: Seq[CommitRequest]
) {
  import TableBatch._

  private val database = context.database
  private val tail = new LogTail(context, log)
  private val drafts = new Drafts(context.publisher, log, asked)
  private val base = asked.head.version - 1
  private val tableId = asked.head.tableId

  /** Whether a reply to the batch was lost or came late. The database may have given up its rows
    * since, as in a repair or when a standby without them took over, while another process
    * published them: the log has the last word then.
    */
  private var isInDoubt = false

  /** The requests that may still be committed, by what is known so far. */
  private def requests = drafts.requests

  /** The state of the table, as far as this process knows it. */
  def begin(): TableState = {
    checkLog()
    Option(context.states.get(log.path)).getOrElse(attached())
  }

  /** The outcomes of all requests, by those of the requests that have contents. */
  def end(outcomes: Seq[CommitOutcome]): Seq[CommitOutcome] = {
    val kept = requests.zip(outcomes).collect { case (request, _: Unknown) =>
      request.txnId
    }.toSet
    drafts.discard(request => !kept.contains(request.txnId))
    outcomes ++ withoutContent
  }

  /** The outcomes if an error ended the commit; none if it says all. */
  def failed(e: Throwable): Option[Seq[CommitOutcome]] =
    if (drafts.failure.contains(e)) Some(withoutContent)
    else {
      val found = if (isInDoubt) inLog.fold(e => Some(unknown(e)), ifMade) else None
      if (found.isEmpty) drafts.discard(_ => true)
      found.map(end)
    }

  /** The outcomes of the request without content and of those after it. In doubt it may have none as
    * it has been published, so that its staged file is gone.
    */
  private def withoutContent: Seq[CommitOutcome] = {
    val rest = asked.drop(requests.size)
    val failed = drafts.failure.toSeq.map(Failed) ++ rest.drop(1).map(_ => Taken(Seq.empty))
    if (rest.isEmpty || !isInDoubt) failed
    else Try(byLog(rest)).fold(e => rest.map(_ => Unknown(e)), ifMade(_).getOrElse(failed))
  }

  /** Finds obstacles to publishing before anything is ratified. */
  private def checkLog(): Unit = if (LogFolder.isLocal(log)) {
    LinkProbe.require(log, new LocalFolder(log))
    context.replaced.of(log, asked.head).foreach(_.requireKept(log, base + 1))
  }

  private def attached(): TableState = database.attach(log, tableId, base)

  /** What the database is asked.
    *
    * @throws java.lang.Exception
    *   if the first request has no content
    */
  def question(state: TableState): Batch = {
    val contents = drafts.stamped(state.stamp)
    Batch(log, state, headTxn(state), requests, contents)
  }

  /** Publishes the batch, which is ratified. */
  def publish(asked: Batch, reply: Reply, ratification: Ratification): Seq[CommitOutcome] = {
    val state = asked.state
    Option.when(ratification.tookLong)(asked).flatMap(notInForce(ratification, _)).getOrElse(
      new BatchPublisher(context, log, tail, before(state), requests)(
        state.after(reply),
        reply,
        asked.contents
      )
    )
  }

  /** To be called when a reply to the batch was lost. */
  def doubt(): Unit = isInDoubt = true

  /** The outcomes of a ratified batch that is no longer valid, by the database or the log: while this
    * process was paused, the table at the path may have been replaced.
    */
  private def notInForce(ratification: Ratification, asked: Batch): Option[Seq[CommitOutcome]] = {
    isInDoubt = true
    def isOtherHead = Option(asked.headTxn).exists(_ != tail.txnAt(base).orNull)
    try
      ratification.outcome(log) match {
        case NoAnswer(cause) => Some(unknown(cause))
        case _ if isOtherHead => Some(lost(Seq.empty))
        case _: NotMade => Some(inLog.get)
        case _ => None
      }
    catch { case NonFatal(e) => Some(unknown(e)) }
  }

  /** What the log says of the batch. An error counts, since a sync that is repeated may succeed
    * without the effect of the first.
    */
  private lazy val inLog: Try[Seq[CommitOutcome]] = Try(byLog(requests))

  /** The outcomes by the log alone. Where a version is free, another process that has read a row
    * before may still publish it.
    */
  private def byLog(batch: Seq[CommitRequest]): Seq[CommitOutcome] = {
    val outcomes = batch.foldLeft(Vector.empty[CommitOutcome]) { (done, request) =>
      done :+ (done.lastOption match {
        case Some(last @ (_: Taken | _: Unknown)) => last
        case _ => tail.txnAt(request.version) match {
            case Some(request.txnId) => Committed(request.version, tail.file(request.version))
            case Some(_) => Taken(Seq.empty)
            case None => Unknown(new PublishUnknown(log.file(request.version), null))
          }
      })
    }
    ifMade(outcomes).foreach(_ => LogFolder.of(log).sync())
    outcomes
  }

  /** The outcomes of a batch if its first commit was made. */
  private def ifMade(outcomes: Seq[CommitOutcome]): Option[Seq[CommitOutcome]] =
    Some(outcomes).filter(_.head.isInstanceOf[Committed])

  /** What follows from a reply that refuses the batch.
    *
    * @return
    *   the outcomes, or the state with which it can be tried again
    */
  def react(state: TableState, reply: Reply): Either[TableState, Seq[CommitOutcome]] =
    reply.status match {
      case "replayed" => Right(unlessFailed(reply)(own(reply.commits)).getOrElse(lost(Seq.empty)))
      case "taken" => unlessFailed(reply)(taken(state, reply.commits)).toRight(recreated(state))
      case "table" => otherTable().toRight(recreated(attached()))
      case "ahead" =>
        LogFolder.requireNoGap(log, base + 1)
        Left(tail.adopt(state, base))
      case "tail" | "foreign" => Left(settled(state, reply.commits))
      case _ => Left(attached())
    }

  /** If the reply names a commit of the batch, a failure does not mean that the commit was not
    * made; only the log can say so.
    */
  private def unlessFailed(reply: Reply)(
      found: => Option[Seq[CommitOutcome]]
  ): Option[Seq[CommitOutcome]] = {
    def isOurs = requests.exists(request => reply.commits.exists(_.txnId == request.txnId))
    try found
    catch {
      // A part of the batch may be in the log; a single commit is not, since another one has its
      // version.
      case e: CoordinatorException
          if requests.size == 1 && e.condition == "INTERLOCK_COORDINATOR_RESTORED" => throw e
      case NonFatal(e) if isOurs => Some(unknown(e))
    }
  }

  /** The commit before the first request, if this process published it. */
  private def before(state: TableState): Option[LastCommit] =
    state.own.filter(_ => state.head == base).filter(_.tableId == tableId)

  /** The transaction at the version before the first request. On a remote storage, a commit that
    * this process published itself is looked at, and not read again.
    *
    * @throws CoordinatorException
    *   if another commit or none is in the place of that one, until a repair begins a new epoch; if
    *   the log lacks a version that was published
    */
  private def headTxn(state: TableState): String = {
    val own = before(state)
    val kept = own.filter(ours => !LogFolder.isLocal(log) && ours.isKept(log)).map(_.txnId)
    val found = if (base < 0) None else kept.orElse(tail.txnAt(base))
    lazy val now = attached()
    // Log clean-up removes commits, but not the newest one.
    def isMissed = found.nonEmpty || now.head <= base
    for (ours <- own if !found.contains(ours.txnId) && now.epoch == state.epoch && isMissed)
      throw tail.replaced(state, Ratified(base, ours.txnId, None), found.getOrElse("no commit"))
    if (base >= 0 && found.isEmpty && now.head == base && now.published >= base)
      LogFolder.requireNoGap(log, base + 1)
    found.orNull
  }

  /** Publishes, or marks as published, all ratified commits before the first request. */
  private def settled(state: TableState, commits: Seq[Ratified]): TableState =
    commits.find(_.version <= state.published) match {
      case Some(ours) => throw tail.replaced(state, ours, tail.txnAt(ours.version).getOrElse(""))
      case None => tail.settleAll(state)
    }

  /** The outcomes after other commits came first; those of them that are not published yet are
    * published. None if the log is not the one that the database knows.
    */
  private def taken(state: TableState, commits: Seq[Ratified]): Option[Seq[CommitOutcome]] =
    tail.settle(state, commits) match {
      case LogTail.InPlace(_) =>
        context.states.put(log.path, state.copy(own = None))
        Some(own(commits).getOrElse(lost(winners(state.head, commits))))
      case LogTail.Overtaken(done, ours) =>
        context.states.put(log.path, tail.revoke(state, ours))
        Some(lost(winners(ours.version, done)))
      case LogTail.Contradicted(ours) =>
        tail.txnAt(ours.version).foreach(theirs => throw tail.replaced(state, ours, theirs))
        val isCleaned = tail.lastVersion() >= state.published
        Option.when(isCleaned)(lost(Seq.empty))
    }

  /** The table's id differs from the one that was read: a commit in the log has changed it. */
  private def otherTable(): Option[Seq[CommitOutcome]] = {
    val last = tail.lastVersion()
    Option.when(last > base)(lost(winners(last, Seq.empty)))
  }

  /** The state for a new log, after the table was dropped and created again at the same path. */
  private def recreated(state: TableState): TableState =
    database.recreated(log, state, tableId, tail.lastVersion())

  /** The outcomes if an earlier call has ratified any of the requests, so that it is among
    * `commits`.
    */
  private def own(commits: Seq[Ratified]): Option[Seq[CommitOutcome]] = {
    val versions = commits.map(commit => commit.txnId -> commit.version).toMap
    Option.when(requests.exists(request => versions.contains(request.txnId))) {
      requests.map { request =>
        versions.get(request.txnId).fold[CommitOutcome](Taken(Seq.empty)) { version =>
          tail.txnAt(version).filter(_ != request.txnId).fold[CommitOutcome](
            Committed(version, tail.file(version))
          )(theirs =>
            Failed(Refusals.overwritten(log, Ratified(version, request.txnId, None), theirs))
          )
        }
      }
    }
  }

  def unknown(cause: Throwable): Seq[CommitOutcome] = requests.map(_ => Unknown(cause))

  /** The outcomes if nothing was made, for a reason that lies in another table. */
  def taken: Seq[CommitOutcome] = requests.map(_ => Taken(Seq.empty))

  private def lost(winners: Seq[CommitBody]): Seq[CommitOutcome] =
    Option.when(isInDoubt)(inLog.fold(e => Some(unknown(e)), ifMade)).flatten
      .getOrElse(Taken(winners) +: requests.tail.map(_ => Taken(Seq.empty)))

  /** The commits from the wanted version on, up to the first large one, and as many as fit into
    * [[MostBytes]]. A version that the database does not have is foreign and is read from the log.
    */
  private def winners(last: Long, commits: Seq[Ratified]): Seq[CommitBody] = {
    val known = commits.map(commit => commit.version -> commit).toMap
    var left = MostBytes
    (base + 1 to last.min(base + MostWinners)).iterator
      .takeWhile(_ => left > 0)
      .map(version => tail.body(version, known.get(version).flatMap(_.content)))
      .takeWhile(_.isDefined).flatten
      .tapEach(left -= _.file.getLen)
      .toVector
  }
}

private object TableBatch {
  private val MostWinners = 200L
  private val MostBytes = 16L << 20
}
