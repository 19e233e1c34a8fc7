package io.interlock.spark.audit

import java.time.Instant

import scala.util.Try

import io.interlock.spark.text.Json

/** Writes and reads the record of a rejected commit as a line of JSON. Unknown values are left out.
  */
object RecordJson {

  /** The JSON keys of columns whose key differs from their name. */
  private val keys = Map(
    "txn_id" -> "txnId",
    "class" -> "operationClass",
    "read_version" -> "readVersion",
    "source_rows" -> "sourceRows",
    "winner_operation" -> "winnerOperation",
    "winner_class" -> "winnerClass",
    "winner_txn_id" -> "winnerTxnId",
    "millis_saved" -> "millisSaved"
  )

  /** Columns with a list of values, one for each winner; a rejected commit has one winner. */
  private val ofWinners = Set("winners", "rules", "verdicts")

  /** Times that all clients can represent lie between these. */
  private val Earliest = Instant.parse("0001-01-02T00:00:00Z")
  private val Latest = Instant.parse("9999-12-30T00:00:00Z")

  def write(record: Rejected): String = {
    val inColumns = ConflictRecord.columns.filterNot(column => ofWinners(column.name))
      .map(column => keys.getOrElse(column.name, column.name) -> column.value(record))
    val others = Seq(
      "winnerVersion" -> record.winner.map(_.version),
      "rule" -> record.rule,
      "verdict" -> record.verdict,
      "table" -> record.table,
      "why" -> record.why,
      "undecided" -> Option.when(record.undecided)(true),
      "sqlState" -> record.sqlState
    )
    Json.write((inColumns ++ others).collect {
      case (key, Some(time: Instant)) => key -> time.toString
      case (key, Some(value)) => key -> value
    }.toMap)
  }

  /** The record of a line; None if it is not a record, such as a line that a crash has cut off. */
  def read(line: String): Option[Rejected] = for {
    members <- Json.readObject(line)
    text = (key: String) => members.get(key).flatMap(Option(_)).map(_.toString)
    time <- text("time").flatMap(time => Try(Instant.parse(time)).toOption)
    if time.isAfter(Earliest) && time.isBefore(Latest)
    txnId <- text("txnId")
  } yield {
    def long(key: String) = text(key).flatMap(_.toLongOption)
    def texts(key: String) = members.get(key).collect { case all: Iterable[_] =>
      all.map { case text: String => text; case other => Json.write(other) }.toSeq
    }
    Rejected(
      RecordedCommit(
        time,
        txnId,
        operation = text("operation"),
        operationClass = text("operationClass"),
        policy = text("policy"),
        readVersion = long("readVersion"),
        scope = text("scope"),
        user = text("user"),
        millis = long("millis"),
        bytes = long("bytes")
      ),
      table = text("table"),
      winner = long("winnerVersion").map(
        WinningVersion(_, text("winnerOperation"), text("winnerClass"), text("winnerTxnId"))
      ),
      rule = text("rule"),
      verdict = text("verdict"),
      why = text("why"),
      files = texts("files"),
      rows = texts("rows"),
      sourceRows = texts("sourceRows"),
      predicate = text("predicate"),
      undecided = text("undecided").nonEmpty,
      kind = text("kind"),
      condition = text("condition"),
      sqlState = text("sqlState"),
      message = text("message"),
      phase = text("phase"),
      millisSaved = long("millisSaved"),
      session = text("session"),
      application = text("application")
    )
  }
}
