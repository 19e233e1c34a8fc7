package io.interlock.spark.audit

import java.time.Instant

import scala.util.Try

import io.interlock.spark.text.Json

/** Writes and reads the record of a rejected commit as a line of JSON, which leaves out what is not
  * known.
  */
object RecordJson {

  /** The keys of the columns whose name is not their key. */
  private val keys = Map(
    "operation" -> "laterOperation",
    "class" -> "laterClass",
    "read_version" -> "readVersion",
    "winner_operation" -> "earlierOperation",
    "winner_class" -> "earlierClass",
    "winner_attempt" -> "winnerAttempt"
  )

  /** All clients have times between these. */
  private val Earliest = Instant.parse("0001-01-02T00:00:00Z")
  private val Latest = Instant.parse("9999-12-30T00:00:00Z")

  def write(record: Rejected): String = {
    val inColumns = ConflictRecord.columns.filter(_.name != "winners")
      .map(column => keys.getOrElse(column.name, column.name) -> column.value(record))
    val others = Seq(
      "winnerVersion" -> record.winner.map(_.version),
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

  /** Gives None for a line that is no record, such as one that a crash has cut off. */
  def read(line: String): Option[Rejected] = for {
    members <- Json.readObject(line)
    text = (key: String) => members.get(key).flatMap(Option(_)).map(_.toString)
    time <- text("time").flatMap(found => Try(Instant.parse(found)).toOption)
    if time.isAfter(Earliest) && time.isBefore(Latest)
    txnId <- text("attempt")
  } yield {
    def long(key: String) = text(key).flatMap(_.toLongOption)
    def texts(key: String) = members.get(key).collect { case all: Iterable[_] =>
      all.map { case text: String => text; case other => Json.write(other) }.toSeq
    }
    Rejected(
      RecordedCommit(
        time,
        txnId,
        operation = text("laterOperation"),
        operationClass = text("laterClass"),
        policy = text("policy"),
        rule = text("rule"),
        verdict = text("verdict"),
        readVersion = long("readVersion"),
        scope = text("scope"),
        user = text("user"),
        millis = long("millis"),
        bytes = long("bytes")
      ),
      table = text("table"),
      winner = long("winnerVersion").map(
        WinningVersion(_, text("earlierOperation"), text("earlierClass"), text("winnerAttempt"))
      ),
      why = text("why"),
      files = texts("files"),
      rows = texts("rows"),
      predicate = text("predicate"),
      undecided = text("undecided").nonEmpty,
      kind = text("kind"),
      condition = text("condition"),
      sqlState = text("sqlState"),
      message = text("message"),
      session = text("session"),
      application = text("application")
    )
  }
}
