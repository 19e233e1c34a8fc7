package io.interlock.coordinator.postgres

import java.util.{Collections, HashMap => JHashMap, Map => JMap, WeakHashMap}

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.delta.storage.LogStore
import io.interlock.coordinator._
import org.apache.hadoop.fs.{FileStatus, Path}

/** Orders the commits of each table by a row in a Postgres database, with one function call per
  * batch, and then publishes them as `N.json`.
  *
  * If log and database differ, the log is right: a version is committed once its bytes are at
  * `N.json`. Whether a foreign file there can be overwritten depends on the storage; see
  * [[Publisher.ratified]].
  *
  * @param logStores
  *   Delta's LogStore of a log that is not on a local disk
  */
final class PostgresStore(settings: PostgresSettings, logStores: TableLog => LogStore)
    extends CommitStore {
  private val pool = new ConnectionPool(settings)
  private val context =
    new StoreContext(settings, new Database(pool), Publisher.ratified(logStores))

  /** See [[CommitStore.commit]].
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_UNAVAILABLE, _FAILED, _SCHEMA, _CREDENTIALS, _SETTING: the database
    *   gives no answer; INTERLOCK_COORDINATOR_RESTORED, INTERLOCK_COMMIT_OVERWRITTEN: the log and
    *   the database contradict each other, and nothing is written before a repair
    */
  override def commit(log: TableLog, requests: Seq[CommitRequest]): Seq[CommitOutcome] =
    if (requests.isEmpty) Seq.empty
    else {
      LogPaths.check(log)
      val real = LogPaths.resolved(log)
      val batch = new TableBatch(context, real, requests)
      asAsked(log, real)(context.refusing(new PostgresCommit(context, Seq(batch)).run().head))
    }

  override def commitTogether(parts: Seq[TogetherPart]): Seq[CommitOutcome] = {
    parts.foreach(part => LogPaths.check(part.log))
    val real = parts.map(part => part -> LogPaths.resolved(part.log))
    val batches = for ((part, log) <- real; request <- part.request)
      yield part.log -> log -> new TableBatch(context, log, Seq(request))
    val unchanged = for ((part, log) <- real if part.request.isEmpty)
      yield Unchanged(log, part.tableId, part.head)
    val commit = new PostgresCommit(context, batches.map(_._2), unchanged)
    val outcomes = context.refusing(commit.run()).flatten
    batches.map(_._1).zip(outcomes).flatMap { case ((asked, log), outcome) =>
      asAsked(asked, log)(Seq(outcome))
    }
  }

  override def settle(log: TableLog, version: Long): Unit = {
    val real = LogPaths.resolved(log)
    def known = Option(context.states.get(real.path))
      .getOrElse(context.database.attach(real, "", version))
    context.refusing(new LogTail(context, real).settleAll(known)): Unit
  }

  private def asAsked(log: TableLog, real: TableLog)(outcomes: Seq[CommitOutcome]) =
    if (real.path == log.path) outcomes else outcomes.map(PostgresStore.asAsked(log, _))

  /** See [[CommitStore.check]]: asks the database for the table, even if it does not know it. */
  override def check(log: TableLog): Unit = {
    LogPaths.check(log)
    val _ = context.refusing(context.database.tail(LogPaths.resolved(log)))
  }

  private val locks =
    Collections.synchronizedMap(new WeakHashMap[AdvisoryLock, java.lang.Boolean])

  override private[coordinator] def processLock(log: TableLog): ProcessLock = {
    val lock = new AdvisoryLock(pool, LogPaths.resolved(log))
    locks.put(lock, true): Unit
    lock
  }

  /** Before that, tells the database which commits of this process are published, until a call
    * fails: each of them may wait for an answer.
    */
  override def close(): Unit = {
    Try(new JHashMap(context.states).asScala.foreach { case (path, state) =>
      state.own.foreach(own => context.database.published(path, state.epoch, state.head, own.txnId))
    }): Unit
    new JHashMap(locks).keySet.forEach(_.close())
    pool.close()
  }
}

private object PostgresStore {

  /** The outcome with the file paths spelt as in the request's log. */
  def asAsked(log: TableLog, outcome: CommitOutcome): CommitOutcome = {
    def asked(file: FileStatus): FileStatus = {
      file.setPath(new Path(log.path, file.getPath.getName))
      file
    }
    outcome match {
      case Committed(version, file) => Committed(version, asked(file))
      case Taken(winners) => Taken(winners.map(body => body.copy(file = asked(body.file))))
      case other => other
    }
  }
}

/** The state that all commits of a process share. */
final private[postgres] class StoreContext(
    val settings: PostgresSettings,
    val database: Database,
    val publisher: Publisher
) {

  /** The last known state of each table, which the database confirms or corrects. */
  val states: JMap[Path, TableState] = RecentlyUsed.map()

  /** Commits that were replaced while others of their batch were made behind them: this process
    * writes nothing more to these tables.
    */
  val replaced = new LastCommits

  /** Turns a refusal by the database, after which nothing was committed, into a
    * CoordinatorException.
    */
  def refusing[A](work: => A): A =
    try work
    catch { case e: java.sql.SQLException => throw Refusals.of(settings, e) }
}
