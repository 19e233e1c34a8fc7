package io.interlock.coordinator.postgres

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.sql.{Connection, SQLException}

import scala.util.Using

/** One migration of the schema: a resource `<name>.sql` beside this class. */
final private[postgres] case class Migration(version: Int, name: String) {
  def sql: String = Using.resource(getClass.getResourceAsStream(s"$name.sql"))(in =>
    new String(in.readAllBytes(), UTF_8)
  )

  def sha256: String = MessageDigest.getInstance("SHA-256").digest(sql.getBytes(UTF_8))
    .map(byte => f"$byte%02x").mkString
}

/** The schema's migrations; the table `interlock.migrations` has the history of those that were
  * run.
  */
private[postgres] object Migrations {
  val all: Seq[Migration] = Seq(Migration(1, "V1__schema"))
  val newest: Int = all.last.version

  // Takes the lock under which only one process migrates at a time.
  private val Lock = "SELECT pg_advisory_xact_lock(hashtext('interlock.migrations'))"

  /** Runs all missing migrations in one transaction, under a lock that keeps others from running
    * them.
    *
    * @return
    *   the migrations that were run
    * @throws java.sql.SQLException
    *   3F000 if the database's history differs from these migrations; or any error of a migration's
    *   SQL
    */
  def run(connection: Connection): Seq[Migration] = {
    connection.setAutoCommit(false)
    execute(connection, Lock)
    val missing = all.filter(_.version > checked(connection))
    missing.foreach(step => execute(connection, step.sql))
    if (missing.nonEmpty) record(connection, missing)
    connection.commit()
    missing
  }

  /** The database's version, 0 if it has none; None if the user may not read it. */
  def version(connection: Connection): Option[Int] =
    if (!exists(connection, "to_regnamespace('interlock')")) Some(0)
    else if (!may(connection)) None
    else Some(checked(connection))

  /** The version, after a check that its migrations are the ones known here. */
  private def checked(connection: Connection): Int = {
    val history = read(connection)
    if (history.isEmpty && exists(connection, "to_regclass('interlock.tables')"))
      throw new SQLException("the schema was made without interlock coordinator init", "3F000")
    history.zipAll(all.map(step => (step.version, step.sha256)), (0, ""), (0, "")).foreach {
      case ((0, _), _) =>
      case ((found, _), (0, _)) => throw new SQLException(
          s"the schema has version $found, and this Interlock knows $newest: install a newer one",
          "3F000"
        )
      case (found, known) if found != known =>
        throw new SQLException(
          s"step ${known._1} of the schema is another than this Interlock's",
          "3F000"
        )
      case _ =>
    }
    history.lastOption.fold(0)(_._1)
  }

  private def read(connection: Connection): Seq[(Int, String)] =
    if (!exists(connection, "to_regclass('interlock.migrations')")) Seq.empty
    else
      query(connection, "SELECT version, sha256 FROM interlock.migrations ORDER BY version")(row =>
        (row.getInt(1), row.getString(2))
      )

  private def record(connection: Connection, done: Seq[Migration]): Unit = {
    execute(
      connection,
      """SET LOCAL ROLE interlock_admin;
        |CREATE TABLE IF NOT EXISTS interlock.migrations (
        |  version    integer     PRIMARY KEY,
        |  name       text        NOT NULL,
        |  sha256     text        NOT NULL,
        |  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
        |)""".stripMargin
    )
    val insert = "INSERT INTO interlock.migrations (version, name, sha256) VALUES (?, ?, ?)"
    Using.resource(connection.prepareStatement(insert)) { statement =>
      done.foreach { step =>
        statement.setInt(1, step.version)
        statement.setString(2, step.name)
        statement.setString(3, step.sha256)
        statement.executeUpdate()
      }
    }
    execute(connection, "RESET ROLE")
  }

  private def may(connection: Connection): Boolean = query(
    connection,
    "SELECT has_schema_privilege('interlock', 'USAGE') AND " +
      "coalesce(has_table_privilege(to_regclass('interlock.migrations'), 'SELECT'), true)"
  )(_.getBoolean(1)).head

  private def exists(connection: Connection, name: String): Boolean =
    query(connection, s"SELECT $name IS NOT NULL")(_.getBoolean(1)).head

  private def query[A](connection: Connection, sql: String)(read: java.sql.ResultSet => A): Seq[A] =
    Using.resource(connection.createStatement()) { statement =>
      val rows = statement.executeQuery(sql)
      Iterator.continually(rows).takeWhile(_.next()).map(read).toVector
    }

  private def execute(connection: Connection, sql: String): Unit =
    Using.resource(connection.createStatement()) { statement =>
      statement.setEscapeProcessing(false)
      statement.execute(sql): Unit
    }
}
