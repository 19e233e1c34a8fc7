package io.interlock.spark.audit

import java.sql.Timestamp
import java.time.Instant

import scala.util.Try

import io.interlock.rules.{Conflict, ConflictFacts}
import io.interlock.spark.commits.{CommitTags, Operations, WinnerRuling}
import io.interlock.spark.text.Json
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.types._

/** The audit record of a commit that was rejected, in a file beside the table's log, or made after
  * others, in its own tags.
  *
  * @param conflict
  *   why it was rejected; none for a commit that was made
  * @param winners
  *   the version that it lost against, or those that it passed, each with the policy's cell that
  *   decided and its verdict
  * @param facts
  *   all that is known of it, but for winners, by the names of the columns of
  *   [[ConflictRecord.schema]] in camel case
  */
final case class ConflictRecord(
    time: Instant,
    conflict: Option[Conflict],
    winners: Seq[WinnerRuling],
    facts: Map[String, Any]
) {

  /** A fact as text. */
  def text(name: String): Option[String] = facts.get(name).map(_.toString)

  def txnId: String = facts("txnId").toString

  /** The record as a line of JSON. */
  def toJson: String = Json.write(facts + ("time" -> time.toString))

  /** The record as a row of [[ConflictRecord.schema]]. */
  def toRow: Row = {
    val known = facts ++ Map[String, Any](
      "time" -> new Timestamp(time.toEpochMilli),
      "winners" -> winners.map(_.version),
      "rules" -> winners.map(_.rule.orNull),
      "verdicts" -> winners.map(_.verdict.orNull)
    )
    Row.fromSeq(ConflictRecord.schema.map(column =>
      (column.dataType, known.get(ConflictRecord.factOf(column.name))) match {
        case (LongType, Some(number: Number)) => number.longValue
        case (_: ArrayType, Some(several: Iterable[_])) => several.toSeq
        case (_: ArrayType, _) => Nil
        case (_, value) => value.orNull
      }
    ))
  }
}

object ConflictRecord {

  /** Times that all clients can represent lie between these. */
  private val Earliest = Instant.parse("0001-01-02T00:00:00Z")
  private val Latest = Instant.parse("9999-12-30T00:00:00Z")

  private val texts = ArrayType(StringType, containsNull = false)
  private val columns = Seq[(String, DataType)](
    "time" -> TimestampType,
    "outcome" -> StringType,
    "txn_id" -> StringType,
    "operation" -> StringType,
    "class" -> StringType,
    "policy" -> StringType,
    "read_version" -> LongType,
    "version" -> LongType,
    "winners" -> ArrayType(LongType, containsNull = false),
    "rules" -> ArrayType(StringType),
    "verdicts" -> ArrayType(StringType),
    "winner_operation" -> StringType,
    "winner_class" -> StringType,
    "winner_txn_id" -> StringType,
    "scope" -> StringType,
    "files" -> texts,
    "rows" -> texts,
    "source_rows" -> texts,
    "predicate" -> StringType,
    "kind" -> StringType,
    "condition" -> StringType,
    "message" -> StringType,
    "phase" -> StringType,
    "user" -> StringType,
    "session" -> StringType,
    "application" -> StringType,
    "millis" -> LongType,
    "millis_saved" -> LongType,
    "bytes" -> LongType,
    "block" -> StringType
  )
  private val always = Set("time", "outcome", "txn_id")

  val schema: StructType = StructType(columns.map { case (name, kind) =>
    StructField(name, kind, nullable = !always(name) && !kind.isInstanceOf[ArrayType])
  })

  private def factOf(column: String): String =
    if (column == "class") "operationClass"
    else "_(.)".r.replaceAllIn(column, _.group(1).toUpperCase)

  /** The record of a rejected commit.
    *
    * @param others
    *   what is known of it besides the conflict
    */
  def rejected(
      time: Instant,
      conflict: Conflict,
      others: Map[String, Option[Any]]
  ): ConflictRecord =
    ofFacts(time, conflict, ConflictFacts.of(conflict) ++ known(others) + ("outcome" -> "REJECTED"))

  /** The record of a line of JSON; None if it is not one, such as a line that a crash has cut off. */
  def ofJson(line: String): Option[ConflictRecord] = for {
    members <- Json.readObject(line)
    facts = members.filter { case (_, fact) => fact != null }
    time <- Try(Instant.parse(facts("time").toString)).toOption
    if time.isAfter(Earliest) && time.isBefore(Latest)
    conflict <- ConflictFacts.read(facts)
  } yield ofFacts(time, conflict, facts)

  private def ofFacts(time: Instant, conflict: Conflict, facts: Map[String, Any]) = {
    val verdict = conflict.verdict.map(_.name)
    val winners = conflict.winner.map(it => WinnerRuling(it.version, conflict.rule, verdict))
    ConflictRecord(time, Some(conflict), winners.toSeq, facts)
  }

  /** The record of a commit that was made, from what it says of itself. It may have passed nobody.
    */
  def made(version: Long, info: CommitInfo, time: Instant): Option[ConflictRecord] =
    info.txnId.map { txnId =>
      val tags = info.tags.getOrElse(Map.empty)
      val facts = known(Map(
        "outcome" -> Some("REBASED"),
        "txnId" -> Some(txnId),
        "operation" -> Operations.name(info),
        "operationClass" -> tags.get(CommitTags.Class),
        "policy" -> tags.get(CommitTags.Policy),
        "readVersion" -> info.readVersion,
        "version" -> Some(version),
        "scope" -> tags.get(CommitTags.Scope),
        "user" -> tags.get(CommitTags.User),
        "block" -> tags.get(CommitTags.BlockId),
        "millis" -> tags.get(CommitTags.Millis).flatMap(_.toLongOption),
        "bytes" -> tags.get(CommitTags.BytesSaved).flatMap(_.toLongOption)
      ))
      ConflictRecord(time, None, CommitTags.winners(tags), facts)
    }

  private def known(facts: Map[String, Option[Any]]): Map[String, Any] =
    facts.collect { case (name, Some(fact)) => name -> fact }
}
