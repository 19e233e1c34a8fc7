package io.interlock.spark.procedures

import java.time.Instant

import io.interlock.spark.audit._
import io.interlock.spark.commits.CommitTags
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.{SessionPolicies, TablePolicy}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.{Row, SparkSession}

/** The audit records of tables by name, for procedures: of rejected commits beside the log, of rebased
  * ones in it.
  */
object AuditedTable {
  private val MostNamed = 5

  /** Rejected and rebased commits, newest first, read as the iterator advances. */
  private[procedures] def conflicts(
      session: SparkSession,
      table: DeltaTableV2,
      statement: String
  ): Iterator[Row] = newestFirst(NamedTable.snapshot(session, table, statement)).map(_.toRow)

  /** @throws InterlockException
    *   INTERLOCK_UNKNOWN_TRANSACTION
    */
  def explain(session: SparkSession, name: String, txnId: String, statement: String): Row = {
    val now = NamedTable.snapshot(session, NamedTable.load(session, name, statement), statement)
    def unknown(found: String) = InterlockException(
      "INTERLOCK_UNKNOWN_TRANSACTION",
      "txnId" -> txnId,
      "table" -> name,
      "found" -> found
    )
    val record = (rejected(now) ++ made(now)).find(_.txnId == txnId)
      .getOrElse(throw unknown(whatThereIs(now)))
    if (record.winners.isEmpty && record.conflict.isEmpty) {
      val version = record.text("version").getOrElse("")
      throw unknown(s"It committed version $version and passed no other commit")
    }
    Explanation(
      record,
      now.metadata.partitionColumns,
      record.winners.map(_.version).map(at => CommitTags.winner(at, new CommitLog(now).info(at))),
      SessionPolicies.readable
    ).toRow
  }

  private def whatThereIs(now: Snapshot): String = {
    val newest = newestFirst(now).take(MostNamed).map(_.txnId).toSeq
    if (newest.nonEmpty)
      s"The newest transactions with a record are ${newest.mkString(", ")}"
    else if (TablePolicy.named(now.metadata.configuration).nonEmpty) "The table has no records"
    else "The table has no policy, and conflicts are recorded only under one"
  }

  /** All records, newest first. Files and commits are read as the iterator advances. */
  private def newestFirst(snapshot: Snapshot): Iterator[ConflictRecord] = {
    val lost = rejected(snapshot).buffered
    val passed = made(snapshot).buffered
    Iterator.unfold(()) { _ =>
      val isLost =
        lost.headOption.exists(record => passed.headOption.forall(!_.time.isAfter(record.time)))
      (if (isLost) lost.nextOption() else passed.nextOption()).map(_ -> (()))
    }.filter(record => record.conflict.nonEmpty || record.winners.nonEmpty)
  }

  private def rejected(snapshot: Snapshot): Iterator[ConflictRecord] =
    AuditTrail.folder(snapshot.deltaLog).newestFirst()

  /** The records of all commits, those included that passed nobody. */
  private def made(snapshot: Snapshot): Iterator[ConflictRecord] = {
    val commits = new CommitLog(snapshot)
    commits.infosNewestFirst().flatMap { case (version, info) =>
      val millis = commits.timestamp(version, Some(info)).getOrElse(0L)
      ConflictRecord.made(version, info, Instant.ofEpochMilli(millis))
    }
  }
}
