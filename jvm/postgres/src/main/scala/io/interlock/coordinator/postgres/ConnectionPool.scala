package io.interlock.coordinator.postgres

import java.io.PrintWriter
import java.sql.{Connection, SQLException, SQLFeatureNotSupportedException}
import java.util.logging.Logger
import javax.sql.DataSource

import scala.util.Using
import scala.util.control.NonFatal

import com.zaxxer.hikari.{HikariConfig, HikariDataSource}
import io.interlock.coordinator.{Causes, CoordinatorException}
import org.postgresql.ds.PGSimpleDataSource

/** A pool of connections to one database, opened when they are needed. */
final private[postgres] class ConnectionPool(settings: PostgresSettings) extends AutoCloseable {
  private val source =
    try new Connections(settings)
    catch {
      case _: NoClassDefFoundError =>
        throw unavailable("there is no driver on the class path", ConnectionPool.AddDriver)
    }
  private var pool: Option[HikariDataSource] = None
  private var isClosed = false

  /** Runs `work` on a connection of the pool, or on a new one once the pool is closed.
    *
    * @throws CoordinatorException
    *   INTERLOCK_COORDINATOR_UNAVAILABLE if there is no connection; `work` has not begun
    */
  def use[A](work: Connection => A): A = connected(opened()).fold(fresh(work)) { pool =>
    Using.resource(connected(pool.getConnection)) { connection =>
      try work(connection)
      catch {
        // By a server that was the primary: behind a proxy, a new connection finds the new one.
        case e: SQLException if e.getSQLState == ConnectionPool.ReadOnly =>
          pool.evictConnection(connection)
          throw e
      }
    }
  }

  /** Runs `work` as [[use]] does, and again if the connection was broken. The pool notices that by
    * itself only after half a second without use, so all of its connections may be.
    *
    * @param work
    *   changes nothing more when it is done again
    * @throws CoordinatorException
    *   as above, but `work` may have been done
    */
  def useAgain[A](work: Connection => A): A = {
    def tried(more: Int): A =
      try use(work)
      catch { case e: SQLException if more > 0 && Refusals.isDisconnected(e) => tried(more - 1) }
    tried(settings.poolSize)
  }

  /** Runs `work` on a new connection outside of the pool. */
  def fresh[A](work: Connection => A): A = Using.resource(open())(work)

  /** A new connection outside of the pool, which the caller closes. */
  def open(): Connection = connected(source.getConnection)

  override def close(): Unit = synchronized {
    isClosed = true
    pool.foreach(_.close())
    pool = None
  }

  private def opened(): Option[HikariDataSource] = synchronized {
    if (pool.isEmpty && !isClosed) pool = Some(new HikariDataSource(configuration))
    pool
  }

  private def configuration: HikariConfig = {
    val config = new HikariConfig()
    config.setDataSource(source)
    config.setPoolName(s"interlock-${settings.name}")
    config.setMaximumPoolSize(settings.poolSize)
    config.setMinimumIdle(0)
    config.setConnectionTimeout(settings.statementTimeout.toMillis.max(ConnectionPool.ShortestWait))
    config.setIdleTimeout(settings.idleTimeout.toMillis.max(ConnectionPool.ShortestIdle))
    config
  }

  private def connected[A](opened: => A): A =
    try opened
    catch { case NonFatal(e) => throw unavailable(e) }

  private def unavailable(failure: Throwable): CoordinatorException = {
    val causes = Causes.of(failure)
    val database = causes.collect { case e: SQLException => e }.lastOption
    causes.collectFirst { case known: CoordinatorException => known }
      .getOrElse {
        val reason = database.fold(failure.getClass.getName)(ConnectionPool.described)
        val state = database.flatMap(e => Option(e.getSQLState)).getOrElse("")
        unavailable(reason, ConnectionPool.help(state, reason))
      }
  }

  private def unavailable(reason: String, help: String): CoordinatorException =
    new CoordinatorException(
      "INTERLOCK_COORDINATOR_UNAVAILABLE",
      Map(
        "coordinator" -> settings.name,
        "database" -> settings.place,
        "user" -> settings.user,
        "reason" -> reason,
        "help" -> help
      )
    )
}

private[postgres] object ConnectionPool {
  private val ReadOnly = "25006"

  // The least values that the pool accepts, in milliseconds.
  private val ShortestWait = 250L
  private val ShortestIdle = 10000L

  private val AddDriver = "Start Spark with --packages org.postgresql:postgresql:42.7.10, " +
    "which interlock.configure adds where the builder has the coordinator's url."

  /** Advice for the user, by the SQLSTATE and the message of the server or the driver. */
  def help(sqlState: String, reason: String): String = sqlState.take(2) match {
    case "08" if reason.contains("unsupported startup parameter") =>
      "Let the url name the server itself and not PgBouncer, which does not pass on how long a call " +
        "may take. docs/coordinator.md says what it needs otherwise."
    case "28" => "Correct the user, or what its password is read from."
    case "3D" => "Correct the database in the url, or create it."
    case "53" => "Let the server have more connections, or lower poolSize."
    case _ => "Start the database, or correct the url, and run the statement again. Where it is " +
        "gone for good, docs/coordinator.md says how its tables go on."
  }

  /** The first line of the server's or the driver's message, with its SQLSTATE. */
  def described(e: SQLException): String = {
    val text = Option(e.getMessage).flatMap(_.linesIterator.nextOption()).getOrElse("no message")
    s"$text (SQLSTATE ${Option(e.getSQLState).getOrElse("unknown")})"
  }
}

/** Opens connections, asking for the password each time. */
final private class Connections(settings: PostgresSettings) extends DataSource {
  private val source = {
    val made = new PGSimpleDataSource()
    val (hosts, ports) = settings.url.hosts.unzip
    made.setServerNames(hosts.toArray)
    made.setPortNumbers(ports.toArray)
    made.setDatabaseName(settings.url.database)
    made.setApplicationName("interlock")
    made.setConnectTimeout(Connections.ConnectSeconds)
    made.setLoginTimeout(2 * Connections.ConnectSeconds)
    made.setSocketTimeout(settings.statementTimeout.toSeconds.toInt + Connections.ConnectSeconds)
    made.setTcpKeepAlive(true)
    made.setOptions(
      s"-c statement_timeout=${settings.statementTimeout.toMillis} " +
        s"-c lock_timeout=${settings.lockTimeout.toMillis} " +
        s"-c idle_in_transaction_session_timeout=${settings.idleTimeout.toMillis}"
    )
    made.setLogServerErrorDetail(false) // details quote the values of rows
    settings.url.parameters.foreach { case (key, value) => made.setProperty(key, value) }
    made
  }

  override def getConnection(): Connection =
    source.getConnection(settings.user, settings.credentials.password(settings.name, settings.user))

  override def getConnection(user: String, password: String): Connection =
    throw new SQLFeatureNotSupportedException("the user is part of the settings")

  override def getLogWriter: PrintWriter = source.getLogWriter
  override def setLogWriter(out: PrintWriter): Unit = source.setLogWriter(out)
  override def getLoginTimeout: Int = source.getLoginTimeout
  override def setLoginTimeout(seconds: Int): Unit = source.setLoginTimeout(seconds)
  override def getParentLogger: Logger = source.getParentLogger
  override def unwrap[T](kind: Class[T]): T =
    throw new SQLFeatureNotSupportedException(kind.getName)
  override def isWrapperFor(kind: Class[_]): Boolean = false
}

private object Connections {
  private val ConnectSeconds = 10
}
