package io.interlock.coordinator.postgres

import java.sql.Connection
import java.util.concurrent.CountDownLatch

import scala.util.control.NonFatal
import scala.util.{Try, Using}

import io.interlock.coordinator.{ProcessLock, TableLog}

/** An advisory lock of the database, to the end of a transaction: the server hands it out in the order
  * of asking, and takes it back from a session that is dead, or idle for too long.
  */
final private[postgres] class AdvisoryLock(pool: ConnectionPool, log: TableLog)
    extends ProcessLock {
  import AdvisoryLock._

  private var asked: Option[Asked] = None

  override def isWanted: Boolean =
    Try(pool.use(granted(_, "pg_try_advisory_xact_lock"))).toOption.contains(false)

  override def tryTake(): Boolean = {
    if (asked.forall(_.isOver)) asked = Some(new Asked)
    asked.exists(_.isGranted)
  }

  override def release(): Unit = {
    asked.foreach(_.end())
    asked = None
  }

  /** Waits for the lock on a thread and a connection of its own, and holds it there: those of the pool
    * are for commits.
    */
  final private class Asked extends Thread("interlock-turn") {
    @volatile var isGranted = false
    @volatile var isOver = false
    private val ended = new CountDownLatch(1)

    setDaemon(true)
    start()

    def end(): Unit = ended.countDown()

    override def run(): Unit =
      try pool.fresh(hold)
      catch { case NonFatal(_) => }
      finally isOver = true

    private def hold(connection: Connection): Unit = {
      connection.setAutoCommit(false)
      try {
        Using.resource(connection.createStatement())(_.execute(Limits)): Unit
        granted(connection, "pg_advisory_xact_lock"): Unit
        isGranted = true
        ended.await()
      } finally connection.rollback()
    }
  }

  private def granted(connection: Connection, function: String): Boolean =
    Using.resource(connection.prepareStatement(s"SELECT $function(hashtextextended(?, ?))")) {
      statement =>
        statement.setString(1, log.path.toString)
        statement.setLong(2, Seed)
        Using.resource(statement.executeQuery()) { row =>
          row.next()
          row.getObject(1) != java.lang.Boolean.FALSE
        }
    }
}

private object AdvisoryLock {

  /** Tells these locks from those of others in the database. */
  private val Seed = 0x696e7465726cL

  /** In milliseconds: more than anybody waits for, and as long as a turn may take at most. */
  private val Limits =
    "SET LOCAL lock_timeout = 5000; SET LOCAL idle_in_transaction_session_timeout = 2000"
}
