package io.interlock.coordinator

import scala.collection.immutable.TreeMap

/** The state of a [[CommitQueue]], as an immutable value. Each method is one atomic step of the
  * queue and does not wait, do I/O or read a clock.
  *
  * @param generation
  *   the number of times that commits on their way were not made
  * @param tail
  *   the last version that was handed in; -1 if none is on its way and the log's last version is
  *   not known
  * @param waiting
  *   commits that were handed in and not sent yet, in the order of their versions
  * @param bodies
  *   commits by version, including those on their way
  * @param taken
  *   the last version that the store has called taken, even if its commit is too large to be kept;
  *   -1 for none
  * @tparam E
  *   the type of a commit that was handed in
  */
final private[coordinator] case class QueueState[E](
    generation: Long,
    tail: Long,
    waiting: Vector[QueueState.Waiting[E]],
    bodies: TreeMap[Long, CommitBody],
    taken: Long
) {
  import CommitQueue._
  import QueueState._

  /** The commits from version `from` on, without gaps. */
  def view(from: Long): View = {
    val known = knownFrom(from)
    View(generation, known, reachesEnd = known.nonEmpty && known.last.version == tail)
  }

  /** The commits from version `from` on that are known to be in the log. */
  def settled(from: Long): Seq[CommitBody] = knownFrom(from).takeWhile(_.isThere)

  private def knownFrom(from: Long): Seq[CommitBody] =
    Iterator.iterate(from)(_ + 1).map(bodies.get).takeWhile(_.nonEmpty).flatten.toVector

  /** Whether a commit of that version is known, or this process has handed in a later one. */
  def isTaken(version: Long): Boolean =
    version <= tail || version <= taken || bodies.contains(version)

  /** Adds a commit to those that wait, or answers it at once.
    *
    * @param body
    *   the commit, for those that are judged against it
    * @param seen
    *   the generation of the view that it was judged against
    */
  def handIn(entry: E, body: CommitBody, seen: Long): Either[Answer, QueueState[E]] =
    if (seen != generation) Left(Left(Withdrawn))
    else if (isTaken(body.version)) Left(Right(Taken(Nil)))
    else
      Right(copy(
        tail = body.version,
        waiting = waiting :+ Waiting(entry, body),
        bodies = bodies + (body.version -> body)
      ))

  /** Takes the waiting commits up to the first gap, to be sent as one batch. */
  def nextBatch: (Vector[Waiting[E]], QueueState[E]) = {
    val isNext = waiting.zipWithIndex.takeWhile { case (next, i) =>
      i < MostInBatch && next.version == waiting.head.version + i
    }
    val (batch, rest) = waiting.splitAt(isNext.size)
    (batch, copy(waiting = rest))
  }

  /** The state after the store's outcomes. If a commit did not get its version, all commits after
    * it are withdrawn, sent or not, because they were judged against it.
    */
  def settle(batch: Vector[Waiting[E]], outcomes: Seq[CommitOutcome]): Settled[E] = {
    val made = batch.zip(outcomes).takeWhile { case (sent, outcome) => sent.isMadeBy(outcome) }
    val arrived = copy(bodies = made.foldLeft(bodies) {
      case (known, (sent, Committed(_, file))) =>
        // The queue may have started over since, and another commit have been handed in.
        if (!known.get(sent.version).exists(_ eq sent.body)) known
        else known + (sent.version -> sent.body.copy(file = file))
      case (known, _) => known
    })
    val answers = batch.zip(outcomes).zipWithIndex.map { case ((sent, outcome), i) =>
      sent.entry -> (outcome match {
        case Taken(_) if i > made.size => Left(Withdrawn)
        case own => Right(own)
      })
    }
    if (made.size == batch.size) Settled(answers, arrived)
    else {
      val forgotten = arrived.forget
      val next = outcomes(made.size) match {
        case Taken(winners) => forgotten.next.learn(forgotten.next.generation, winners)
            .copy(taken = taken.max(batch(made.size).version))
        case _ => forgotten.next
      }
      Settled(answers ++ forgotten.answers, next)
    }
  }

  /** Withdraws the waiting commits and forgets those on their way, which were not made. */
  def forget: Settled[E] = Settled(
    waiting.map(_.entry -> Left(Withdrawn)),
    QueueState(
      generation + 1,
      -1,
      Vector.empty,
      bodies.filter { case (_, body) => body.isThere },
      taken
    )
  )

  /** The same, and also forgets the commits that were in the log. */
  def startOver: Settled[E] = {
    val forgotten = forget
    forgotten.copy(next = forgotten.next.copy(bodies = TreeMap.empty[Long, CommitBody], taken = -1))
  }

  /** Remembers commits that were read from the log, unless commits were withdrawn or forgotten
    * since.
    *
    * @param seen
    *   the generation in which they were read
    */
  def learn(seen: Long, commits: Seq[CommitBody]): QueueState[E] =
    if (seen != generation) this
    else copy(bodies = bodies ++ commits.filter(_.isThere).map(body => body.version -> body))

  /** The same state without the lines of one version, which can be read from the log. */
  def without(version: Long): QueueState[E] = copy(bodies = bodies - version)
}

private[coordinator] object QueueState {

  /** The maximum number of commits in a batch, since a store may hold all of them in memory. */
  val MostInBatch = 100

  final case class Waiting[E](entry: E, body: CommitBody) {
    def version: Long = body.version

    /** False if the commit had been made by an earlier try, at another version. */
    def isMadeBy(outcome: CommitOutcome): Boolean = outcome match {
      case Committed(at, _) => at == version
      case _ => false
    }
  }

  /** The answer that each commit gets after it was handed in. */
  type Answer = Either[CommitQueue.Withdrawn.type, CommitOutcome]

  final case class Settled[E](answers: Seq[(E, Answer)], next: QueueState[E])

  def empty[E]: QueueState[E] = QueueState(0, -1, Vector.empty, TreeMap.empty, -1)
}
