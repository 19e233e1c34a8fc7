package io.interlock.coordinator.postgres

import scala.annotation.tailrec

import io.interlock.coordinator._
import org.apache.hadoop.fs.Path

/** The result of a repair.
  *
  * @param head
  *   the table's last version
  * @param published
  *   the number of ratified commits that were published, or found in the log
  * @param adopted
  *   the number of foreign commits that were added to the database
  * @param newEpoch
  *   whether the database contradicted the log and now starts again from the log
  * @param swept
  *   the orphaned files that were deleted
  */
final private[postgres] case class Repaired(
    head: Long,
    epoch: Long,
    published: Long,
    adopted: Long,
    newEpoch: Boolean,
    swept: Seq[Path]
)

/** Makes the database agree with a table's log; if the two differ, the log is right. */
final private[postgres] class Repair(context: StoreContext) {
  import Repair._

  private val database = context.database

  /** @param olderThanMillis
    *   orphaned files that are younger are kept
    */
  def run(named: TableLog, olderThanMillis: Long): Repaired = {
    LogPaths.check(named)
    val log = LogPaths.resolved(named)
    val tail = new LogTail(context, log)
    if (tail.lastVersion() < 0) throw Refusals.badPath(log, "there is no table")
    if (!database.tables().exists(_.path == log.path.toString))
      throw Refusals.badPath(log, "the coordinator does not know the table")
    val before = database.attach(log, "", tail.lastVersion())
    val (state, newEpoch) = settled(tail, log, before, MostTries)
    Repaired(
      head = state.head,
      epoch = state.epoch,
      published =
        if (newEpoch) 0 else (state.published.min(before.head) - before.published).max(0),
      adopted = (state.head - before.head).max(0),
      newEpoch = newEpoch,
      swept = OrphanFiles.sweep(log, olderThanMillis)
    )
  }

  /** The state in which database and log agree, and whether it begins an epoch: not if the table was
    * changed since the two contradicted each other.
    */
  @tailrec private def settled(
      tail: LogTail,
      log: TableLog,
      known: TableState,
      tries: Int
  ): (TableState, Boolean) = {
    val found = agree(tail, known, log).map(_ -> false)
      .orElse(database.repair(log, known, tail.lastVersion()).map(_ -> true))
    found match {
      case Some(state) => state
      case None if tries == 1 => throw Refusals.unsettled(context.settings, "repair")
      case None => settled(tail, log, database.attach(log, "", tail.lastVersion()), tries - 1)
    }
  }

  /** The state after all ratified commits were published and all foreign ones adopted; none if log
    * and database contradict each other. Writers that run meanwhile may ratify more, and publish
    * that themselves.
    */
  private def agree(tail: LogTail, before: TableState, log: TableLog): Option[TableState] =
    try if (isReplaced(tail, before, log)) None
      else {
        val settled = tail.settleAll(before)
        val state =
          if (tail.lastVersion() > settled.head) tail.adopt(settled, tail.lastVersion())
          else settled
        Option.when(tail.lastVersion() >= state.published)(state)
      }
    catch { case e: CoordinatorException if contradictions(e.condition) => None }

  /** Whether the log has another commit at the head's version than the ratified one. */
  private def isReplaced(tail: LogTail, state: TableState, log: TableLog): Boolean =
    database.headCommit(log, state)
      .exists(ours => tail.txnAt(ours.version).exists(_ != ours.txnId))
}

private object Repair {

  /** Each try after the first follows a commit that was made meanwhile. */
  private val MostTries = 10

  private val contradictions = Set(
    "INTERLOCK_COORDINATOR_RESTORED",
    "INTERLOCK_COMMIT_OVERWRITTEN",
    "INTERLOCK_COORDINATOR_CONTENT_GONE",
    "INTERLOCK_LOG_GAP"
  )
}
