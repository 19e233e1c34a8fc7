package io.interlock.coordinator.postgres

import java.sql.Connection

import scala.concurrent.duration._
import scala.util.control.NonFatal
import scala.util.{Try, Using}

import io.interlock.coordinator.{ProcessLock, TableLog}

/** An advisory lock of the database, held by a transaction that does nothing else. The server
  * releases it if the session ends or is idle for two seconds.
  *
  * Its session is opened when processes first compete for a version, and closed by the server when
  * it is idle.
  */
final private[postgres] class AdvisoryLock(pool: ConnectionPool, log: TableLog)
    extends ProcessLock with AutoCloseable {
  import AdvisoryLock._
  import ProcessLock._

  private var session: Option[Connection] = scala.None
  private var isHeld = false
  private var askedAt = System.nanoTime - BetweenAsks
  private var failedAt = System.nanoTime - BackOff

  override def isWanted: Boolean =
    !isHeld && Try(pool.use(isGranted)).toOption.contains(false)

  override def ask(): Answer = {
    val now = System.nanoTime
    if (isHeld) Mine
    else if (now - failedAt < BackOff) Missing
    else if (now - askedAt < BetweenAsks) Theirs(now)
    else {
      askedAt = now
      // If the server has closed the session, a new one is opened.
      Try(session.map(asked)).toOption.flatten.orElse {
        close()
        Try(asked(opened())).toOption
      }.getOrElse {
        close()
        failedAt = now
        Missing
      }
    }
  }

  override def release(): Unit = if (isHeld) {
    isHeld = false
    try session.foreach(_.commit())
    catch { case NonFatal(_) => close() }
  }

  private def asked(connection: Connection): Answer = {
    isHeld = isGranted(connection)
    if (isHeld) Mine
    else {
      connection.rollback()
      Theirs(System.nanoTime)
    }
  }

  private def opened(): Connection = {
    val connection = pool.open()
    session = Some(connection)
    connection.setNetworkTimeout((work: Runnable) => work.run(), Patience.toMillis.toInt)
    Using.resource(connection.createStatement())(_.execute(Limits)): Unit
    connection.setAutoCommit(false)
    connection
  }

  override def close(): Unit = {
    session.foreach(open => Try(open.close()))
    session = scala.None
    isHeld = false
  }

  private def isGranted(connection: Connection): Boolean =
    Using.resource(connection.prepareStatement(Granted)) { statement =>
      statement.setString(1, log.path.toString)
      statement.setLong(2, Seed)
      Using.resource(statement.executeQuery()) { row =>
        row.next()
        row.getBoolean(1)
      }
    }
}

private object AdvisoryLock {
  private val Granted = "SELECT pg_try_advisory_xact_lock(hashtextextended(?, ?))"

  /** Keeps these locks apart from other applications' locks in the database. */
  private val Seed = 0x696e7465726cL

  private val Patience = 2.seconds
  private val Limits =
    s"SET idle_in_transaction_session_timeout = ${Patience.toMillis}; " +
      s"SET idle_session_timeout = ${1.minute.toMillis}"

  private val BetweenAsks = 5.millis.toNanos
  private val BackOff = 5.seconds.toNanos
}
