package io.interlock.coordinator.postgres

import java.io.IOException
import java.sql.Connection
import java.util.concurrent.FutureTask

import scala.concurrent.duration._
import scala.util.control.NonFatal
import scala.util.{Try, Using}

import io.interlock.coordinator.{ProcessLock, TableLog}

/** An advisory lock of the database, held by a transaction that does nothing else. The server grants
  * it in the order in which processes ask, and releases it if the session ends or is idle for two
  * seconds.
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

  /** Done once the server has granted the lock, or has refused to wait any longer. */
  private var waiting: Option[FutureTask[Boolean]] = scala.None
  private var failedAt = System.nanoTime - BackOff

  override def isWanted: Boolean =
    !isHeld && Try(pool.use(isGranted(_, IfFree))).toOption.contains(false)

  override def ask(): Answer = waiting match {
    case _ if isHeld => Mine
    case Some(answer) if !answer.isDone => Theirs(System.nanoTime)
    case Some(answer) =>
      waiting = scala.None
      isHeld = Try(answer.get()).getOrElse(false)
      if (isHeld) Mine
      else {
        session.foreach(open => Try(open.rollback()))
        asked()
      }
    case scala.None if System.nanoTime - failedAt < BackOff => Missing
    case scala.None => asked()
  }

  /** If the server has closed the session, a new one is opened. */
  private def asked(): Answer = Try(session.map(asked)).toOption.flatten.orElse {
    close()
    Try(asked(opened())).toOption
  }.getOrElse {
    close()
    failedAt = System.nanoTime
    Missing
  }

  private def asked(connection: Connection): Answer = {
    isHeld = isGranted(connection, IfFree)
    if (isHeld) Mine
    else {
      val answer = new FutureTask(() => isGrantedInLine(connection))
      val thread = new Thread(answer, "interlock-turn")
      thread.setDaemon(true)
      try thread.start()
      catch { case none: OutOfMemoryError => throw new IOException("no thread", none) }
      waiting = Some(answer)
      Theirs(System.nanoTime)
    }
  }

  private def isGrantedInLine(connection: Connection): Boolean = {
    patience(connection, LongestWait + Patience)
    try isGranted(connection, InLine)
    finally patience(connection, Patience)
  }

  /** How long to wait for an answer of the server, before the session is given up. */
  private def patience(connection: Connection, most: FiniteDuration): Unit =
    connection.setNetworkTimeout((work: Runnable) => work.run(), most.toMillis.toInt)

  override def release(): Unit =
    if (waiting.nonEmpty) close()
    else if (isHeld) {
      isHeld = false
      try session.foreach(_.commit())
      catch { case NonFatal(_) => close() }
    }

  private def opened(): Connection = {
    val connection = pool.open()
    session = Some(connection)
    patience(connection, Patience)
    Using.resource(connection.createStatement())(_.execute(Limits)): Unit
    connection.setAutoCommit(false)
    connection
  }

  /** Also ends a wait: the server notices when it grants the lock, and passes it on. */
  override def close(): Unit = {
    session.foreach(open => Try(if (waiting.isEmpty) open.close() else open.abort(_.run())))
    session = scala.None
    waiting = scala.None
    isHeld = false
  }

  private def isGranted(connection: Connection, how: String): Boolean =
    Using.resource(connection.prepareStatement(how)) { statement =>
      statement.setString(1, log.path.toString)
      statement.setLong(2, Seed)
      Using.resource(statement.executeQuery()) { row =>
        row.next()
        row.getBoolean(1)
      }
    }
}

private object AdvisoryLock {
  private val IfFree = "SELECT pg_try_advisory_xact_lock(hashtextextended(?, ?))"
  private val InLine = "SELECT true FROM pg_advisory_xact_lock(hashtextextended(?, ?))"

  /** Keeps these locks apart from other applications' locks in the database. */
  private val Seed = 0x696e7465726cL

  private val Patience = 2.seconds

  /** Who waits longer goes to the end of the line. */
  private val LongestWait = 4.seconds
  private val Limits =
    s"SET idle_in_transaction_session_timeout = ${Patience.toMillis}; " +
      s"SET lock_timeout = ${LongestWait.toMillis}; SET statement_timeout = 0; " +
      s"SET idle_session_timeout = ${1.minute.toMillis}"

  private val BackOff = 5.seconds.toNanos
}
