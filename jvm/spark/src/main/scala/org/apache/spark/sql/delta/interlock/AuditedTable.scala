package org.apache.spark.sql.delta.interlock

import io.interlock.spark.SessionPolicies
import io.interlock.spark.audit.{ConflictRecord, Explanation, Met}
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The audit records of tables by name, for procedures. */
object AuditedTable {

  /** What [[conflicts]] returns. */
  val recordSchema: StructType = ConflictRecord.schema

  /** What [[explain]] returns. */
  val explanationSchema: StructType = Explanation.schema

  private val MostNamed = 5

  /** Rejected and rebased commits, newest first, read as the iterator advances. */
  def conflicts(session: SparkSession, name: String, statement: String): Iterator[Row] =
    AuditTrail.newestFirst(snapshot(session, name, statement)).map(_.toRow)

  /** @param attempt
    *   the id of a transaction
    * @throws InterlockException
    *   INTERLOCK_UNKNOWN_ATTEMPT
    */
  def explain(session: SparkSession, name: String, attempt: String, statement: String): Row = {
    val now = snapshot(session, name, statement)
    val record = AuditTrail.rejectedBy(now, attempt)
      .orElse(AuditTrail.committedBy(now, attempt).map { case (version, rebased) =>
        rebased.getOrElse(throw InterlockException.unknownAttempt(
          attempt,
          name,
          s"It committed version $version and met no other commit"
        ))
      })
      .getOrElse(throw InterlockException.unknownAttempt(attempt, name, whatThereIs(now)))
    Explanation(
      record,
      now.metadata.partitionColumns,
      record.winners.flatMap(met(now, _)),
      SessionPolicies.readable
    ).toRow
  }

  private def met(now: Snapshot, version: Long): Option[Met] =
    new CommitLog(now).info(version).map { info =>
      val tags = info.tags.getOrElse(Map.empty)
      Met(version, Option(info.operation), tags.get(CommitTags.Class), info.txnId)
    }

  private def whatThereIs(now: Snapshot): String = {
    val newest = AuditTrail.newestFirst(now).take(MostNamed)
      .flatMap(_.text(ConflictRecord.Fact.Attempt)).toSeq
    if (newest.isEmpty) "The table has no records"
    else s"The newest attempts with a record are ${newest.mkString(", ")}"
  }

  private def snapshot(session: SparkSession, name: String, statement: String): Snapshot =
    NamedTable.snapshot(session, NamedTable.load(session, name, statement), statement)
}
