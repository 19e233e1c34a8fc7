package io.interlock.coordinator.postgres

import java.sql.{Connection, PreparedStatement, ResultSet, SQLException, Types}
import java.util.UUID

import scala.util.Using

import io.interlock.coordinator._
import org.apache.hadoop.fs.Path

/** Calls the functions of the schema `interlock`, each in a transaction of its own. */
final private[postgres] class Database(pool: ConnectionPool) {
  import Database._

  def attach(log: TableLog, tableId: String, logHead: Long): TableState =
    pool.useAgain(state(_, "attach(?, ?, ?)", log.path, tableId, logHead))

  /** The commit that was ratified at the head of a known table; none if the head is foreign. */
  def headCommit(log: TableLog, known: TableState): Option[Ratified] =
    pool.useAgain(rows(_, "attach(?, ?, ?)", Seq(log.path, "", known.head)) { row =>
      Option(row.getString("head_txn")).map(Ratified(row.getLong("head"), _, None))
    }).head

  /** All tables, by path. */
  def tables(): Seq[TableRow] = pool.useAgain(rows(_, "status()", Seq.empty) { row =>
    TableRow(
      path = row.getString("log_path"),
      tableId = Option(row.getString("table_id")),
      epoch = row.getLong("epoch"),
      sequence = row.getLong("sequence"),
      head = row.getLong("head"),
      published = row.getLong("published"),
      updated = row.getTimestamp("updated_at").toInstant.toString
    )
  })

  def recreated(log: TableLog, known: TableState, tableId: String, logHead: Long): TableState =
    pool.useAgain(state(
      _,
      "recreated(?, ?, ?, ?, ?)",
      log.path,
      known.epoch,
      known.head,
      tableId,
      logHead
    ))

  /** Begins a new epoch from the log; none if the table is not in the known state any more. Not done
    * again where the reply is lost: commits may have been made since.
    */
  def repair(log: TableLog, known: TableState, logHead: Long): Option[TableState] =
    pool.use { connection =>
      connection.setAutoCommit(false) // the pool rolls back what is not committed
      val (now, tableId) =
        rows(connection, "attach(?, ?, ?)", Seq(log.path, "", known.head))(row =>
          (state(row), row.getString("table_id"))
        ).head
      Option.when(now.isWhere(known)) {
        val repaired = state(connection, "repair(?, ?, ?)", log.path, tableId, logHead)
        connection.commit()
        repaired
      }
    }

  /** Asks in one transaction, in the given order, and commits it if no reply is a refusal.
    *
    * @return
    *   the replies, up to the first refusal
    */
  def commit(attempt: UUID, questions: Seq[Question]): Seq[Reply] = pool.use { connection =>
    connection.setAutoCommit(questions.size == 1) // the pool rolls back what is not committed
    val replies = asked(connection, attempt, questions.toList)
    val isRefused = questions.lazyZip(replies).exists(_.refuses(_))
    if (questions.size > 1 && !isRefused) connection.commit()
    replies
  }

  private def asked(connection: Connection, attempt: UUID, questions: List[Question]): List[Reply] =
    questions match {
      case Nil => Nil
      case next :: rest =>
        val found = next match {
          case batch: Batch => commit(connection, attempt, batch)
          case table: Unchanged => reply(connection, "tail(?)", table.log.path)
        }
        found :: (if (next.refuses(found)) Nil else asked(connection, attempt, rest))
    }

  private def commit(connection: Connection, attempt: UUID, batch: Batch): Reply = {
    import batch.{contents, requests}
    def array(kind: String, values: Seq[Any]) =
      connection.createArrayOf(kind, values.map(_.asInstanceOf[AnyRef]).toArray)
    reply(
      connection,
      "commit(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      batch.log.path,
      requests.head.tableId,
      batch.state.epoch,
      requests.head.version - 1,
      batch.state.sequence,
      batch.headTxn,
      attempt,
      requests.last.newTableId,
      array("text", requests.map(_.txnId)),
      bytes(connection, contents.map { case InMemory(bytes, _) => bytes; case _ => null }),
      array("text", contents.map { case StagedFile(name, _, _) => name; case _ => null }),
      array("bigint", contents.map(_.size)),
      bytes(connection, contents.map(_.sha256))
    )
  }

  /** Asked on a new connection: those of the pool may be broken, like the one that lost the reply.
    */
  def outcome(log: TableLog, batchId: UUID): Reply =
    pool.fresh(reply(_, "outcome(?, ?)", log.path, batchId))

  def published(path: Path, epoch: Long, version: Long, txnId: String): Reply =
    pool.useAgain(reply(_, "published(?, ?, ?, ?)", path, epoch, version, txnId))

  def tail(log: TableLog): Reply = pool.useAgain(reply(_, "tail(?)", log.path))

  def revoke(log: TableLog, epoch: Long, version: Long, txnId: String): Reply =
    pool.useAgain(reply(_, "revoke(?, ?, ?, ?)", log.path, epoch, version, txnId))

  def adopt(log: TableLog, epoch: Long, from: Long, to: Long): Reply =
    pool.useAgain(reply(_, "adopt(?, ?, ?, ?)", log.path, epoch, from, to))
}

private object Database {
  private val StagedName = """\.\d{1,20}\.[0-9A-Za-z_-]{1,200}\.staged""".r

  private def state(connection: Connection, call: String, arguments: Any*): TableState =
    rows(connection, call, arguments)(state).head

  private def state(row: ResultSet): TableState = TableState(
    rowId = row.getString("id"),
    epoch = row.getLong("epoch"),
    sequence = row.getLong("sequence"),
    head = row.getLong("head"),
    published = row.getLong("published"),
    own = None
  )

  private def reply(connection: Connection, call: String, arguments: Any*): Reply = {
    val found = rows(connection, call, arguments) { row =>
      val commit = Option(row.getString("txn_id"))
        .map(txnId => Ratified(row.getLong("version"), txnId, content(row)))
      Reply(
        status = row.getString("status"),
        epoch = row.getLong("epoch"),
        sequence = row.getLong("sequence"),
        head = row.getLong("head"),
        published = row.getLong("published"),
        commits = commit.toSeq
      )
    }
    found.head.copy(commits = found.flatMap(_.commits))
  }

  /** @throws java.sql.SQLException
    *   if the name of a staged file leads out of the log's folder; no function of the schema
    *   accepts such a name
    */
  private def content(row: ResultSet): Option[CommitContent] = {
    val sha256 = row.getBytes("sha256")
    (Option(row.getBytes("content")), Option(row.getString("staged_name"))) match {
      case (Some(bytes), _) => Some(InMemory(bytes, sha256))
      case (_, Some(name @ StagedName())) => Some(StagedFile(name, row.getLong("size"), sha256))
      case (_, Some(_)) => throw new SQLException("the name of a staged file is no such name")
      case _ => None
    }
  }

  private def rows[A](connection: Connection, call: String, arguments: Seq[Any])(
      read: ResultSet => A
  ): Vector[A] =
    Using.resource(connection.prepareStatement(s"SELECT * FROM interlock.$call")) { statement =>
      arguments.zipWithIndex.foreach { case (value, i) => bind(statement, i + 1, value) }
      Using.resource(statement.executeQuery()) { result =>
        Iterator.continually(result).takeWhile(_.next()).map(read).toVector
      }
    }

  private def bind(statement: PreparedStatement, index: Int, value: Any): Unit = value match {
    case null => statement.setNull(index, Types.VARCHAR)
    case number: Long => statement.setLong(index, number)
    case array: java.sql.Array => statement.setArray(index, array)
    case id: UUID => statement.setObject(index, id)
    case text => statement.setString(index, text.toString)
  }

  private def bytes(connection: Connection, values: Seq[Array[Byte]]): java.sql.Array =
    connection.createArrayOf("bytea", values.toArray[Array[Byte]].asInstanceOf[Array[AnyRef]])
}
