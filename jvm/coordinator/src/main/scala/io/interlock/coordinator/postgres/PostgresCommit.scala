package io.interlock.coordinator.postgres

import io.interlock.coordinator._

/** One batch of commits of consecutive versions. */
final private[postgres] class PostgresCommit(
    context: StoreContext,
    log: TableLog,
    requests: Seq[CommitRequest]
) {
  import PostgresCommit._

  private val database = context.database
  private val tail = new LogTail(context, log)
  private val drafts = new Drafts(context.publisher, log, requests)
  private val base = requests.head.version - 1
  private val tableId = requests.head.tableId

  def run(): Seq[CommitOutcome] =
    try {
      checkLog()
      val known = Option(context.states.get(log.path)).getOrElse(attached())
      val outcomes = attempt(known, MostTries)
      val kept = requests.zip(outcomes).collect { case (request, _: Unknown) =>
        request.txnId
      }.toSet
      drafts.discard(request => !kept.contains(request.txnId))
      outcomes
    } catch {
      case e: Throwable =>
        context.states.remove(log.path)
        drafts.discard(_ => true)
        throw e
    }

  /** What would be an obstacle to publishing is found before anything is ratified. */
  private def checkLog(): Unit = {
    LogPaths.check(log)
    if (LogFolder.isLocal(log)) LinkProbe.require(log, new LocalFolder(log))
  }

  private def attached(): TableState = database.attach(log, tableId, base)

  private def attempt(state: TableState, tries: Int): Seq[CommitOutcome] = {
    val contents = drafts.stamped(state.stamp)
    val ratification = new Ratification(context, log, tail, requests)
    val (found, asked) = (headTxn(state), System.nanoTime)
    ratification.ask(state, found, contents) match {
      case Answered(reply) if reply.status == "committed" =>
        if (System.nanoTime - asked > LongPause && !ratification.isInForce(found)) lost(Seq.empty)
        else new Publishing(context, log, tail, requests)(state.after(reply), reply, contents)
      case Answered(reply) => react(state.after(reply), reply, tries)
      case NotMade(cause) if tries == 1 => throw cause
      case _: NotMade => attempt(state, tries - 1)
      case NoAnswer(cause) =>
        context.states.remove(log.path)
        requests.map(_ => Unknown(cause))
    }
  }

  private def react(state: TableState, reply: Reply, tries: Int): Seq[CommitOutcome] = {
    def again(next: TableState) =
      if (tries == 1) throw Refusals.unsettled(context.settings, reply.status)
      else attempt(next, tries - 1)
    reply.status match {
      case "replayed" => own(reply.commits).getOrElse(lost(Seq.empty))
      case "taken" => taken(state, reply.commits).getOrElse(again(recreated(state)))
      case "table" if tail.lastVersion() > base => lost(Seq.empty)
      case "table" => again(recreated(attached()))
      case "ahead" => again(tail.adopt(state, base))
      case "tail" | "foreign" => again(settled(state, reply.commits))
      case _ => again(attached())
    }
  }

  /** The transaction at the version before the first request. Where reading is slow, the commit that
    * this process published itself is not read again.
    */
  private def headTxn(state: TableState): String = {
    val remembered = state.headTxn.filter(_ => state.head == base && !LogFolder.isLocal(log))
    if (base < 0) null else remembered.orElse(tail.txnAt(base)).orNull
  }

  /** What stands between the log and the version before the first request is settled. */
  private def settled(state: TableState, commits: Seq[Ratified]): TableState =
    commits.find(_.version <= state.published) match {
      case Some(ours) => throw tail.replaced(state, ours, tail.txnAt(ours.version).getOrElse(""))
      case None => tail.settleAll(state)
    }

  /** Other commits came first: those of them that nobody published yet are published. None if the
    * log is not the one that the database knows.
    */
  private def taken(state: TableState, commits: Seq[Ratified]): Option[Seq[CommitOutcome]] =
    tail.settle(state, commits) match {
      case LogTail.InPlace(_) =>
        context.states.put(log.path, state.copy(headTxn = None))
        Some(own(commits).getOrElse(lost(winners(state.head, commits))))
      case LogTail.Overtaken(ours) =>
        context.states.put(log.path, tail.revoke(state, ours))
        Some(lost(winners(ours.version, commits.filter(_.version < ours.version))))
      case LogTail.Contradicted(ours) =>
        tail.txnAt(ours.version).foreach(theirs => throw tail.replaced(state, ours, theirs))
        Option.when(tail.lastVersion() >= state.published)(
          lost(Seq.empty)
        ) // or an old log, cleaned
    }

  /** The log begins anew where a table was dropped and created at the same place. */
  private def recreated(state: TableState): TableState =
    database.recreated(log, state, tableId, tail.lastVersion())

  /** The outcomes if any of the requests is among `commits`, by an earlier call. */
  private def own(commits: Seq[Ratified]): Option[Seq[CommitOutcome]] = {
    val versions = commits.map(commit => commit.txnId -> commit.version).toMap
    Option.when(requests.exists(request => versions.contains(request.txnId))) {
      requests.map { request =>
        versions.get(request.txnId).fold[CommitOutcome](Taken(Seq.empty))(version =>
          Committed(version, tail.file(version))
        )
      }
    }
  }

  private def lost(winners: Seq[CommitBody]): Seq[CommitOutcome] =
    Taken(winners) +: requests.tail.map(_ => Taken(Seq.empty))

  /** The commits in the way, as long as they are small: a version that the database does not have is
    * foreign and in the log.
    */
  private def winners(last: Long, commits: Seq[Ratified]): Seq[CommitBody] = {
    val known = commits.map(commit => commit.version -> commit).toMap
    (base + 1 to last.min(base + MostWinners)).iterator
      .map(version => tail.body(version, known.get(version).flatMap(_.content)))
      .takeWhile(_.isDefined).flatten.toVector
  }
}

private object PostgresCommit {

  /** Each try after the first follows an answer of the database that changed what is known. */
  private val MostTries = 10

  /** After which a reply is looked at again before it is acted on, in nanoseconds. */
  private val LongPause = 1000000000L

  private val MostWinners = 200L
}
