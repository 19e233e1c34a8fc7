package io.interlock.coordinator.postgres

import java.net.SocketTimeoutException
import java.sql.SQLException

import io.interlock.coordinator.{Causes, CommitContent, CoordinatorException, StagedFile, TableLog}

/** The errors that say why nothing was committed. */
private[postgres] object Refusals {

  /** SQLSTATEs of a database without the schema, or with another version of it. */
  private val schemaStates = Set("3F000", "42883", "42P01", "42704")

  /** Classes of SQLSTATE after which the server has rolled back. */
  private val rolledBack = Set("22", "23", "25", "3F", "40", "42", "55", "P0")
  private val CompletionUnknown = "40003"
  private val QueryCancelled = "57014"

  /** Whether the server itself says that a call changed nothing. */
  def isFinal(e: SQLException): Boolean = Option(e.getSQLState)
    .exists(state =>
      state == QueryCancelled || state != CompletionUnknown && rolledBack.contains(state.take(2))
    )

  /** Whether the connection broke or the server ended its session, without the longest wait for an
    * answer.
    */
  def isDisconnected(e: SQLException): Boolean =
    Option(e.getSQLState).exists(state => state.startsWith("08") || state.startsWith("57P")) &&
      !Causes.of(e).exists(_.isInstanceOf[SocketTimeoutException])

  def of(settings: PostgresSettings, e: SQLException): CoordinatorException = {
    val isSchema = Option(e.getSQLState).exists(schemaStates.contains)
    new CoordinatorException(
      if (isSchema) "INTERLOCK_COORDINATOR_SCHEMA" else "INTERLOCK_COORDINATOR_FAILED",
      Map(
        "coordinator" -> settings.name,
        "database" -> settings.place,
        "reason" -> ConnectionPool.described(e)
      )
    )
  }

  /** The log has a commit that the database ratified before it was restored from an older backup.
    */
  def restored(log: TableLog, version: Long, state: TableState): CoordinatorException =
    new CoordinatorException(
      "INTERLOCK_COORDINATOR_RESTORED",
      Map(
        "path" -> log.path.toString,
        "version" -> version.toString,
        "head" -> state.head.toString,
        "epoch" -> state.epoch.toString
      )
    )

  def overwritten(log: TableLog, ours: Ratified, theirs: String): CoordinatorException =
    new CoordinatorException(
      "INTERLOCK_COMMIT_OVERWRITTEN",
      Map(
        "path" -> log.path.toString,
        "version" -> ours.version.toString,
        "ours" -> ours.txnId,
        "theirs" -> (if (theirs.isEmpty) "unknown" else theirs)
      )
    )

  /** @param content
    *   the content from which a ratified commit should have been published
    */
  def contentGone(
      log: TableLog,
      commit: Ratified,
      content: Option[CommitContent]
  ): CoordinatorException = {
    val file = content.collect { case StagedFile(name, _, _) => name }
    new CoordinatorException(
      "INTERLOCK_COORDINATOR_CONTENT_GONE",
      Map(
        "path" -> log.path.toString,
        "version" -> commit.version.toString,
        "file" -> file.getOrElse("none")
      )
    )
  }

  def badPath(log: TableLog, problem: String): CoordinatorException = new CoordinatorException(
    "INTERLOCK_COORDINATOR_PATH",
    Map("path" -> log.path.toString.replaceAll("\\p{Cntrl}", "?"), "problem" -> problem)
  )

  /** The storage of a table gave an error during a repair, whose message may have the stack trace of
    * a server in it.
    */
  def notRepaired(table: String, failed: Throwable): CoordinatorException =
    new CoordinatorException(
      "INTERLOCK_COORDINATOR_REPAIR",
      Map(
        "path" -> table,
        "reason" -> failed.toString.linesIterator.takeWhile(!_.startsWith("\tat ")).mkString("\n")
      ),
      failed
    )

  /** The database's state changed between all tries, by other writers or for another reason. */
  def unsettled(settings: PostgresSettings, status: String): CoordinatorException =
    new CoordinatorException(
      "INTERLOCK_COORDINATOR_FAILED",
      Map(
        "coordinator" -> settings.name,
        "database" -> settings.place,
        "reason" -> s"its answers did not settle, the last was: $status"
      )
    )
}
