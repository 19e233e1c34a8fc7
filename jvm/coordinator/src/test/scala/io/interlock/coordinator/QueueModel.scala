package io.interlock.coordinator

import org.apache.hadoop.fs.{FileStatus, Path}

/** Processes, each with a [[QueueState]] of its own, over one log, step by step.
  *
  * The steps are those that the locks of [[CommitQueue]] make atomic, and the ones that a transaction
  * and a store take between them. The log is the list of its transactions; a transaction knows the
  * list that it was judged against.
  */
object QueueModel {

  /** @param transactions
    *   the process of each
    * @param alone
    *   those that go past the queue
    * @param foreign
    *   how many commits come from nobody's queue
    * @param faults
    *   how often a store fails
    * @param drops
    *   how often a queue lets go of a commit that it remembers
    * @param startsOver
    *   how often a queue forgets all commits
    * @param handsInAtOnce
    *   whether nothing can come between the look at the generation and the handing in
    * @param keepsSettledOnly
    *   whether who starts again forgets what it was judged against while that was on its way
    * @param startsAgain
    *   whether who was judged against a withdrawn commit starts again before it is judged against more
    */
  final case class Setting(
      transactions: Vector[Int],
      alone: Set[Int] = Set.empty,
      foreign: Int = 1,
      faults: Int = 1,
      drops: Int = 0,
      startsOver: Int = 0,
      handsInAtOnce: Boolean = true,
      keepsSettledOnly: Boolean = true,
      startsAgain: Boolean = true
  ) {
    val processes: Int = transactions.max + 1
  }

  sealed trait Phase

  /** Without the turn: before a try, which starts from what is settled. */
  case object Idle extends Phase

  /** Has the turn; is judged against all that it knows of. */
  final case class Ready(seen: Long) extends Phase

  /** Has the turn and has looked at the generation already, in a queue that does so beforehand. */
  final case class Checked(seen: Long) extends Phase

  /** Has the turn; must see what it has missed since it looked in generation `seen`. */
  final case class Judging(seen: Long) extends Phase

  /** Has the turn; reads the log, as far as the queue does not know it. */
  final case class Reading(seen: Long, known: Seq[CommitBody]) extends Phase

  /** Has the turn, and is about to tell the queue of it. */
  final case class Learning(seen: Long, read: Seq[CommitBody]) extends Phase

  /** Handed in. */
  case object Waiting extends Phase

  /** Past the queue: the log was read. */
  case object Outside extends Phase

  /** Past the queue: the store has answered, the queue does not know yet. */
  final case class Answered(outcome: CommitOutcome) extends Phase

  final case class Done(outcome: String) extends Phase

  /** @param judged
    *   the log that the transaction was judged against
    * @param settled
    *   the part of it that was in the log then, from which it starts again
    */
  final case class Txn(phase: Phase, judged: Vector[String], settled: Vector[String]) {

    /** As it is once it was judged against more. */
    def judgedBy(commits: Seq[CommitBody], next: Phase, keepsSettledOnly: Boolean): Txn = {
      val kept = commits.takeWhile(_.isThere || !keepsSettledOnly).map(_.lines.head)
      Txn(
        next,
        judged ++ commits.map(_.lines.head),
        if (settled == judged) settled ++ kept else settled
      )
    }
  }

  /** A batch at the store, and what became of those before. */
  final case class Batch(
      entries: Vector[QueueState.Waiting[Int]],
      outcomes: Vector[CommitOutcome]
  )

  /** @param turns
    *   who has it, in each process
    * @param sending
    *   what each process sends
    * @param faulty
    *   the transactions that the store has failed itself
    */
  final case class State(
      log: Vector[String],
      txns: Vector[Txn],
      queues: Vector[QueueState[Int]],
      turns: Vector[Option[Int]],
      sending: Vector[Option[Batch]],
      foreign: Int,
      faults: Int,
      drops: Int,
      startsOver: Int,
      faulty: Set[Int]
  )

  final class Violation(what: String) extends Exception(what)

  def start(setting: Setting): State = State(
    log = Vector("read"),
    txns = setting.transactions.map(_ => Txn(Idle, Vector("read"), Vector("read"))),
    queues = Vector.fill(setting.processes)(QueueState.empty[Int]),
    turns = Vector.fill(setting.processes)(None),
    sending = Vector.fill(setting.processes)(None),
    foreign = setting.foreign,
    faults = setting.faults,
    drops = setting.drops,
    startsOver = setting.startsOver,
    faulty = Set.empty
  )

  /** All that can happen next, by name. */
  def steps(setting: Setting, state: State): Seq[(String, State)] =
    state.txns.indices.flatMap(i => ofTxn(setting, state, i)) ++
      state.queues.indices.flatMap(p => ofSender(state, p)) ++
      Option.when(state.foreign > 0)(
        "a foreign commit" ->
          state.copy(log = state.log :+ s"foreign${state.foreign}", foreign = state.foreign - 1)
      ) ++
      (for {
        p <- state.queues.indices if state.drops > 0
        version <- state.queues(p).bodies.keys
      } yield s"process $p drops $version" ->
        state.copy(drops = state.drops - 1).queue(p, state.queues(p).without(version))) ++
      (for (p <- state.queues.indices if state.startsOver > 0)
        yield s"process $p starts over" ->
          apply(state.copy(startsOver = state.startsOver - 1), p, state.queues(p).startOver))

  private def ofTxn(setting: Setting, state: State, i: Int): Seq[(String, State)] = {
    val txn = state.txns(i)
    val p = setting.transactions(i)
    val queue = state.queues(p)
    val version = txn.judged.size.toLong
    def to(what: String, phase: Phase, judgedBy: Seq[CommitBody] = Nil) =
      Seq(s"$i $what" -> state.txn(i, txn.judgedBy(judgedBy, phase, setting.keepsSettledOnly)))
    def turn(phase: Phase) =
      if (state.turns(p).nonEmpty) Nil
      else Seq(s"$i takes its turn" -> state.turn(p, Some(i)).txn(i, txn.copy(phase = phase)))
    def refused = Seq(
      s"$i is refused" ->
        answered(state.txn(i, txn.copy(phase = Waiting)).turn(p, None), i, withdrawn)
    )
    txn.phase match {
      case Idle if setting.alone(i) =>
        Seq(s"$i reads the log" -> state.txn(i, Txn(Outside, state.log, state.log)))
      case Outside =>
        if (state.sending(p).nonEmpty || queue.waiting.nonEmpty) Nil
        else
          stored(state, i, version).map { case (what, after, outcome) =>
            // The queue's sender waits while a commit goes past it.
            s"$i goes alone, $what" -> after.txn(i, txn.copy(phase = Answered(outcome)))
              .sender(p, Some(Batch(Vector.empty, Vector.empty)))
          }
      case Answered(outcome) =>
        val settled = queue.forget
        val told = answered(state.txn(i, txn.copy(phase = Waiting)), i, Right(outcome))
        Seq(s"$i is told" -> apply(told.sender(p, None), p, settled))
      case Idle =>
        val ahead = queue.settled(version)
        (if (ahead.isEmpty) Nil else to("is judged while it waits", Idle, ahead)) ++
          turn(Ready(queue.generation))
      case Ready(seen) if queue.isTaken(version) => to("sees its version taken", Judging(seen))
      case Ready(seen) if setting.handsInAtOnce => handIn(setting, state, i, seen)
      case Ready(seen) if queue.generation != seen =>
        refused
      case Ready(seen) => to("is not refused", Checked(seen))
      case Checked(_) => handIn(setting, state, i, queue.generation)
      case Judging(seen)
          if setting.startsAgain && txn.judged != txn.settled && queue.generation != seen =>
        refused
      case Judging(_) =>
        val view = queue.view(version)
        if (view.reachesEnd)
          to("is judged", Ready(view.generation), view.commits)
        else to("looks", Reading(view.generation, view.commits.filter(_.isThere)))
      case Reading(seen, known) =>
        val read = (version until state.log.size.toLong).map(v =>
          known.find(_.version == v).getOrElse(body(v, state.log(v.toInt), isThere = true))
        )
        to("reads", Learning(seen, read), read)
      case Learning(seen, read) =>
        val next = state.queue(p, queue.learn(seen, read))
        Seq(s"$i tells what it read" -> next.txn(i, txn.copy(phase = Ready(seen))))
      case Waiting | _: Done => Nil
    }
  }

  private val withdrawn: QueueState.Answer = Left(CommitQueue.Withdrawn)

  private def handIn(setting: Setting, state: State, i: Int, seen: Long): Seq[(String, State)] = {
    val p = setting.transactions(i)
    val version = state.txns(i).judged.size.toLong
    val waits = state.txn(i, state.txns(i).copy(phase = Waiting)).turn(p, None)
    val next = state.queues(p).handIn(i, body(version, s"t$i", isThere = false), seen) match {
      case Right(queue) => waits.queue(p, queue)
      case Left(answer) => answered(waits, i, answer)
    }
    Seq(s"$i hands version $version in" -> next)
  }

  private def ofSender(state: State, p: Int): Seq[(String, State)] =
    state.sending(p) match {
      case None if state.queues(p).waiting.isEmpty => Nil
      case None =>
        val (batch, rest) = state.queues(p).nextBatch
        Seq(s"process $p sends ${batch.map(_.entry)}" ->
          state.queue(p, rest).sender(p, Some(Batch(batch, Vector.empty))))
      case Some(Batch(entries, outcomes)) if outcomes.size < entries.size =>
        val sent = entries(outcomes.size)
        val next =
          if (outcomes.lastOption.exists(!_.isInstanceOf[Committed]))
            Seq(("not tried", state, Taken(Nil)))
          else stored(state, sent.entry, sent.version)
        next.map { case (what, after, outcome) =>
          s"${sent.entry}: $what" -> after.sender(p, Some(Batch(entries, outcomes :+ outcome)))
        }
      case Some(Batch(entries, _)) if entries.isEmpty => Nil // one that goes alone
      case Some(Batch(entries, outcomes)) =>
        val settled = state.queues(p).settle(entries, outcomes)
        Seq(s"process $p is told" -> apply(state.sender(p, None), p, settled))
    }

  /** What a store may make of one commit, which it has judged itself by the version alone. */
  private def stored(state: State, i: Int, version: Long): Seq[(String, State, CommitOutcome)] = {
    val txn = state.txns(i)
    def made = {
      if (txn.phase != Waiting && txn.phase != Outside)
        throw new Violation(s"$i is published though it was answered")
      if (txn.judged != state.log)
        throw new Violation(s"$i is judged against ${txn.judged}, published on ${state.log}")
      state.copy(log = state.log :+ s"t$i")
    }
    def committed = Committed(version, status(version, isThere = true))
    def faulted(state: State) = state.copy(faults = state.faults - 1)
    val outcome =
      if (version < state.log.size.toLong) {
        val winners = (version until state.log.size.toLong)
          .map(v => body(v, state.log(v.toInt), isThere = true))
        Seq(
          ("taken", state, Taken(winners.take(1))),
          ("taken, with all behind it", state, Taken(winners)),
          ("taken, by whom is not known", state, Taken(Nil))
        )
      } else if (version > state.log.size.toLong)
        throw new Violation(s"$i is sent behind a gap: $version on ${state.log}")
      else Seq(("committed", made, committed))
    val faults =
      if (state.faults == 0) Nil
      else
        Seq(("fails", faulted(state.copy(faulty = state.faulty + i)), Failed(Fault))) ++
          (if (version == state.log.size.toLong)
             Seq(("unknown, made", faulted(made), Unknown(Fault)))
           else Nil) :+ (("unknown, not made", faulted(state), Unknown(Fault)))
    outcome ++ faults
  }

  private object Fault extends Exception

  private def apply(
      state: State,
      p: Int,
      settled: QueueState.Settled[Int]
  ): State = settled.answers.foldLeft(state.queue(p, settled.next)) {
    case (before, (i, answer)) => answered(before, i, answer)
  }

  /** Tells a transaction its outcome, which it must be waiting for. */
  private def answered(state: State, i: Int, answer: QueueState.Answer): State = {
    val txn = state.txns(i)
    val isThere = state.log.count(_ == s"t$i")
    def check(holds: Boolean, what: String) = if (!holds) throw new Violation(s"$i: $what")
    check(txn.phase == Waiting, s"is told $answer, and waits for nothing")
    answer match {
      case Right(_: Committed) =>
        check(isThere == 1, s"is told that it is committed, and the log is ${state.log}")
        state.txn(i, txn.copy(phase = Done("committed")))
      case Right(_: Unknown) => state.txn(i, txn.copy(phase = Done("unknown")))
      case other =>
        check(isThere == 0, s"is told $other, and the log is ${state.log}")
        other match {
          case Right(_: Failed) =>
            check(state.faulty(i), "is told of another's failure")
            state.txn(i, txn.copy(phase = Done("failed")))
          case _ => state.txn(i, Txn(Idle, txn.settled, txn.settled))
        }
    }
  }

  private def body(version: Long, txnId: String, isThere: Boolean) =
    CommitBody(version, status(version, isThere), Seq(txnId))

  private def status(version: Long, isThere: Boolean) =
    new FileStatus(if (isThere) 1 else 0, false, 1, 0, 0, new Path(s"/$version"))

  /** All that distinguishes a state from others: of a generation only whether it is the queue's. */
  def key(setting: Setting, state: State): Any = {
    def bodies(found: Iterable[CommitBody]) =
      found.toSeq.map(body => (body.version, body.lines.head, body.isThere))
    def isNow(i: Int, seen: Long) = seen == state.queues(setting.transactions(i)).generation
    val txns = state.txns.zipWithIndex.map { case (txn, i) =>
      val phase = txn.phase match {
        case Ready(seen) => ("ready", isNow(i, seen))
        case Judging(seen) => ("judging", isNow(i, seen))
        case Checked(seen) => ("checked", isNow(i, seen))
        case Reading(seen, known) => ("reading", isNow(i, seen), bodies(known))
        case Learning(seen, read) => ("learning", isNow(i, seen), bodies(read))
        case Answered(outcome) => ("answered", text(outcome))
        case other => other
      }
      (phase, txn.judged, txn.settled)
    }
    val queues = state.queues.map(queue =>
      (queue.tail, queue.taken, queue.waiting, bodies(queue.bodies.values))
    )
    val sending = state.sending.map(_.map(batch => (batch.entries, batch.outcomes.map(text))))
    val left = (state.foreign, state.faults, state.drops, state.startsOver)
    (state.log, txns, queues, state.turns, sending, left)
  }

  private def text(outcome: CommitOutcome): String = outcome match {
    case Taken(winners) => s"taken ${winners.map(_.lines.head)}"
    case Committed(version, _) => s"committed $version"
    case other => other.getClass.getSimpleName
  }

  implicit final private class Changes(state: State) {
    def txn(i: Int, txn: Txn): State = state.copy(txns = state.txns.updated(i, txn))
    def queue(p: Int, queue: QueueState[Int]): State =
      state.copy(queues = state.queues.updated(p, queue))
    def turn(p: Int, who: Option[Int]): State = state.copy(turns = state.turns.updated(p, who))
    def sender(p: Int, batch: Option[Batch]): State =
      state.copy(sending = state.sending.updated(p, batch))
  }
}
