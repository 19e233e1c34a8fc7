package io.interlock.spark.audit

import java.sql.Timestamp
import java.time.Instant

import io.interlock.spark.commits.{CommitTags, Operations, WinnerRuling}
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.types._

/** The audit record of a commit that was rejected or rebased. Unknown values are None. */
sealed trait ConflictRecord {
  def commit: RecordedCommit

  /** The winners: the version that the commit lost against, or those that it passed, each with the
    * policy's cell that decided and its verdict.
    */
  def winners: Seq[WinnerRuling]

  /** The record as a row of [[ConflictRecord.schema]]. */
  def toRow: Row = Row.fromSeq(ConflictRecord.columns.map(column =>
    (column.value(this), column.dataType) match {
      case (Some(time: Instant), _) => new Timestamp(time.toEpochMilli)
      case (None, _: ArrayType) => Nil
      case (value, _) => value.orNull
    }
  ))
}

/** The facts that records of rejected and of rebased commits have in common.
  *
  * @param time
  *   when the commit was rejected or made
  * @param operation
  *   as the table's history calls it
  * @param operationClass
  *   its class under the policy
  * @param scope
  *   the partitions in which it overlaps with the winners, as text
  * @param millis
  *   for a rejected commit, since its transaction began; for a rebased one, spent in judging and
  *   rebasing
  * @param bytes
  *   the size of the data files: written in vain by a rejected commit, or not written again by a
  *   rebased one
  */
final case class RecordedCommit(
    time: Instant,
    txnId: String,
    operation: Option[String],
    operationClass: Option[String],
    policy: Option[String],
    readVersion: Option[Long],
    scope: Option[String],
    user: Option[String],
    millis: Option[Long],
    bytes: Option[Long]
)

/** A rejected commit, whose record is in a file beside the table's log.
  *
  * @param winner
  *   the commit that it lost against
  * @param rule
  *   the policy's cell that decided; none if it was a check by Delta
  * @param verdict
  *   what that cell says
  * @param why
  *   why the policy rejects it, as a clause
  * @param files
  *   files in which the two overlap
  * @param rows
  *   overlapping rows, as JSON objects
  * @param sourceRows
  *   rows of the commit's source that match them, likewise
  * @param predicate
  *   the commit's predicate that matched the rows or could not be decided, as SQL
  * @param undecided
  *   whether the predicate could not be decided
  * @param kind
  *   Delta's name for the conflict, such as ConcurrentAppend
  * @param condition
  *   the error's condition, Interlock's or Delta's
  * @param phase
  *   when it lost, if not at its commit
  * @param millisSaved
  *   if it was stopped before writing: how long the latest such statement took after its scan
  */
final case class Rejected(
    commit: RecordedCommit,
    table: Option[String],
    winner: Option[WinningVersion],
    rule: Option[String],
    verdict: Option[String],
    why: Option[String],
    files: Option[Seq[String]],
    rows: Option[Seq[String]],
    sourceRows: Option[Seq[String]],
    predicate: Option[String],
    undecided: Boolean,
    kind: Option[String],
    condition: Option[String],
    sqlState: Option[String],
    message: Option[String],
    phase: Option[String],
    millisSaved: Option[Long],
    session: Option[String],
    application: Option[String]
) extends ConflictRecord {
  def winners: Seq[WinnerRuling] =
    winner.map(known => WinnerRuling(known.version, rule, verdict)).toSeq
}

/** A commit that was rebased over others, whose record is in its own tags. */
final case class Rebased(commit: RecordedCommit, version: Long, winners: Seq[WinnerRuling])
    extends ConflictRecord

object Rebased {

  /** The record of a commit that was made, from what it says of itself. It may have passed nobody.
    */
  def of(version: Long, info: CommitInfo, time: Instant): Option[Rebased] = {
    val tags = info.tags.getOrElse(Map.empty)
    info.txnId.map { txnId =>
      val commit = RecordedCommit(
        time,
        txnId,
        operation = Operations.name(info),
        operationClass = tags.get(CommitTags.Class),
        policy = tags.get(CommitTags.Policy),
        readVersion = info.readVersion,
        scope = tags.get(CommitTags.Scope),
        user = tags.get(CommitTags.User),
        millis = tags.get(CommitTags.Millis).flatMap(_.toLongOption),
        bytes = tags.get(CommitTags.BytesSaved).flatMap(_.toLongOption)
      )
      Rebased(commit, version, CommitTags.winners(tags))
    }
  }
}

/** A winner, as the log shows it.
  *
  * @param operation
  *   as the table's history calls it
  */
final case class WinningVersion(
    version: Long,
    operation: Option[String],
    operationClass: Option[String],
    txnId: Option[String]
) {
  def text: String =
    s"version $version (${operation.getOrElse("unknown")}${operationClass.fold("")(", " + _)})"
}

object WinningVersion {

  /** @param info
    *   what its commit says of itself
    */
  def of(version: Long, info: CommitInfo): WinningVersion = WinningVersion(
    version,
    Operations.name(info),
    info.tags.flatMap(_.get(CommitTags.Class)),
    info.txnId
  )
}

object ConflictRecord {
  final private[audit] case class Column(
      name: String,
      dataType: DataType,
      value: ConflictRecord => Option[Any]
  )

  private val texts = ArrayType(StringType, containsNull = false)
  private val textsOrNull = ArrayType(StringType)
  private val versions = ArrayType(LongType, containsNull = false)

  private[audit] val columns = Seq(
    Column("time", TimestampType, at => Some(at.commit.time)),
    Column("outcome", StringType, rejected(_ => Some("REJECTED"))(_).orElse(Some("REBASED"))),
    Column("txn_id", StringType, at => Some(at.commit.txnId)),
    Column("operation", StringType, _.commit.operation),
    Column("class", StringType, _.commit.operationClass),
    Column("policy", StringType, _.commit.policy),
    Column("read_version", LongType, _.commit.readVersion),
    Column("version", LongType, Option(_).collect { case made: Rebased => made.version }),
    Column("winners", versions, at => Some(at.winners.map(_.version))),
    Column("rules", textsOrNull, at => Some(at.winners.map(_.rule.orNull))),
    Column("verdicts", textsOrNull, at => Some(at.winners.map(_.verdict.orNull))),
    Column("winner_operation", StringType, rejected(_.winner.flatMap(_.operation))),
    Column("winner_class", StringType, rejected(_.winner.flatMap(_.operationClass))),
    Column("winner_txn_id", StringType, rejected(_.winner.flatMap(_.txnId))),
    Column("scope", StringType, _.commit.scope),
    Column("files", texts, rejected(_.files)),
    Column("rows", texts, rejected(_.rows)),
    Column("source_rows", texts, rejected(_.sourceRows)),
    Column("predicate", StringType, rejected(_.predicate)),
    Column("kind", StringType, rejected(_.kind)),
    Column("condition", StringType, rejected(_.condition)),
    Column("message", StringType, rejected(_.message)),
    Column("phase", StringType, rejected(_.phase)),
    Column("user", StringType, _.commit.user),
    Column("session", StringType, rejected(_.session)),
    Column("application", StringType, rejected(_.application)),
    Column("millis", LongType, _.commit.millis),
    Column("millis_saved", LongType, rejected(_.millisSaved)),
    Column("bytes", LongType, _.commit.bytes)
  )

  private val always =
    Set("time", "outcome", "txn_id", "winners", "rules", "verdicts", "files", "rows", "source_rows")

  val schema: StructType = StructType(columns.map(column =>
    StructField(column.name, column.dataType, nullable = !always(column.name))
  ))

  private def rejected(fact: Rejected => Option[Any])(record: ConflictRecord): Option[Any] =
    Option(record).collect { case rejected: Rejected => rejected }.flatMap(fact)
}
