package io.interlock.spark.audit

import java.sql.Timestamp
import java.time.Instant

import scala.util.Try

import io.interlock.spark.text.Json
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** The audit record of a commit that was rejected, or that passed others.
  *
  * @param facts
  *   by the names of [[ConflictRecord.Fact]]; those of `conflictJson` among them. Text, whole numbers
  *   and lists of text; what is not known is left out
  */
final case class ConflictRecord(facts: Map[String, Any]) {
  import ConflictRecord._

  def text(fact: String): Option[String] = facts.get(fact).flatMap(Option(_)).map(_.toString)

  def long(fact: String): Option[Long] = text(fact).flatMap(_.toLongOption)

  def texts(fact: String): Seq[String] = facts.get(fact) match {
    case Some(all: Iterable[_]) => all.map(asText).toSeq
    case _ => Nil
  }

  /** Milliseconds since 1970. */
  def millis: Long = time.fold(0L)(_.toEpochMilli)

  private def time: Option[Instant] = text(Fact.Time).flatMap(t => Try(Instant.parse(t)).toOption)
    .filter(t => t.isAfter(Earliest) && t.isBefore(Latest))

  def isRejected: Boolean = text(Fact.Outcome).contains(Rejected)

  /** The versions that the commit met: the one that it lost against, or those that it passed. */
  def winners: Seq[Long] =
    if (isRejected) long(Fact.WinnerVersion).toSeq
    else texts(Fact.Winners).flatMap(_.toLongOption)

  /** One line. */
  def toJson: String = Json.write(facts)

  /** By [[ConflictRecord.schema]]. */
  def toRow: Row = Row.fromSeq(columns.map {
    case Column(_, TimestampType, _) => new Timestamp(millis)
    case Column(_, LongType, fact) => long(fact).map(Long.box).orNull
    case Column(_, ArrayType(LongType, _), _) => winners
    case Column(_, ArrayType(_, _), fact) => texts(fact)
    case Column(_, _, fact) => text(fact).orNull
  })
}

object ConflictRecord {
  val Rejected = "REJECTED"
  val Rebased = "REBASED"

  /** Names of facts that Interlock's code reads or adds to those of a conflict. */
  object Fact {
    val Time = "time"
    val Outcome = "outcome"
    val Attempt = "attempt"
    val Kind = "kind"
    val Condition = "condition"
    val Message = "message"
    val Table = "table"
    val Policy = "policy"
    val Rule = "rule"
    val Verdict = "verdict"
    val Why = "why"
    val LaterOperation = "laterOperation"
    val LaterClass = "laterClass"
    val ReadVersion = "readVersion"

    /** The version that a rebased commit made. */
    val Version = "version"
    val Winners = "winners"
    val WinnerVersion = "winnerVersion"
    val EarlierOperation = "earlierOperation"
    val EarlierClass = "earlierClass"
    val WinnerAttempt = "winnerAttempt"
    val Scope = "scope"
    val Files = "files"
    val Rows = "rows"
    val Predicate = "predicate"

    /** Whether the predicate could not be decided; there only if so. */
    val Undecided = "undecided"
    val User = "user"
    val Session = "session"
    val Application = "application"

    /** Since a rejected commit's transaction began, or spent in judging and rebasing one that passed. */
    val Millis = "millis"

    /** The size of data files: written in vain, or not written again. */
    val Bytes = "bytes"
  }

  final private case class Column(name: String, dataType: DataType, fact: String)

  private val texts = ArrayType(StringType, containsNull = false)

  private val columns = Seq(
    Column("time", TimestampType, Fact.Time),
    Column("outcome", StringType, Fact.Outcome),
    Column("attempt", StringType, Fact.Attempt),
    Column("operation", StringType, Fact.LaterOperation),
    Column("class", StringType, Fact.LaterClass),
    Column("policy", StringType, Fact.Policy),
    Column("rule", StringType, Fact.Rule),
    Column("verdict", StringType, Fact.Verdict),
    Column("read_version", LongType, Fact.ReadVersion),
    Column("version", LongType, Fact.Version),
    Column("winners", ArrayType(LongType, containsNull = false), Fact.Winners),
    Column("winner_operation", StringType, Fact.EarlierOperation),
    Column("winner_class", StringType, Fact.EarlierClass),
    Column("winner_attempt", StringType, Fact.WinnerAttempt),
    Column("scope", StringType, Fact.Scope),
    Column("files", texts, Fact.Files),
    Column("rows", texts, Fact.Rows),
    Column("predicate", StringType, Fact.Predicate),
    Column("kind", StringType, Fact.Kind),
    Column("condition", StringType, Fact.Condition),
    Column("message", StringType, Fact.Message),
    Column("user", StringType, Fact.User),
    Column("session", StringType, Fact.Session),
    Column("application", StringType, Fact.Application),
    Column("millis", LongType, Fact.Millis),
    Column("bytes", LongType, Fact.Bytes)
  )

  val schema: StructType = StructType(columns.map(column =>
    StructField(
      column.name,
      column.dataType,
      nullable = !Seq(Fact.Time, Fact.Outcome, Fact.Attempt, Fact.Winners, Fact.Files, Fact.Rows)
        .contains(column.fact)
    )
  ))

  /** None where a line is no record, as one that was cut off by a crash. */
  def ofJson(line: String): Option[ConflictRecord] =
    Json.readObject(line).map(ConflictRecord(_))
      .filter(record => record.text(Fact.Attempt).nonEmpty && record.time.nonEmpty)

  /** All clients have times between these. */
  private val Earliest = Instant.parse("0001-01-02T00:00:00Z")
  private val Latest = Instant.parse("9999-12-30T00:00:00Z")

  private def asText(value: Any): String = value match {
    case text: String => text
    case other => Json.write(other)
  }
}
