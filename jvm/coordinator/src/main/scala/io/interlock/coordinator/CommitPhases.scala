package io.interlock.coordinator

/** The steps of one commit, in order. */
sealed abstract class CommitPhase(val name: String) extends Product with Serializable

object CommitPhase {

  /** Before the first byte of the commit is written anywhere. */
  case object Staging extends CommitPhase("staging")

  /** After the temporary or staged file is complete and synced; before the commit is decided. */
  case object Staged extends CommitPhase("staged")

  /** Before the database is asked. */
  case object Ratifying extends CommitPhase("ratifying")

  /** After the database has ratified the commit; before this process acts on it. */
  case object Ratified extends CommitPhase("ratified")

  /** Before `N.json` appears. */
  case object Publishing extends CommitPhase("publishing")

  /** After `N.json` appeared; before it is synced. */
  case object Linked extends CommitPhase("linked")

  /** After `N.json` is durable; before the outcome is reported. */
  case object Published extends CommitPhase("published")
}

/** Is called at each step of each commit of this JVM, on the thread that takes it. An exception that
  * it throws makes the step fail; tests of failures use this.
  */
trait CommitPhaseObserver {

  /** @param log
    *   the path of the folder `_delta_log`
    */
  def at(phase: CommitPhase, log: String, version: Long): Unit
}

object CommitPhases {
  @volatile private var observer: Option[CommitPhaseObserver] = None

  /** Sets the observer of this JVM in place of any other; null removes it. */
  def observe(observer: CommitPhaseObserver): Unit = this.observer = Option(observer)

  private[coordinator] def reached(phase: CommitPhase, log: TableLog, version: Long): Unit =
    observer.foreach(_.at(phase, log.path.toString, version))
}
