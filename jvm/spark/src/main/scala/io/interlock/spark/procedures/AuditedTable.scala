package io.interlock.spark.procedures

import java.time.Instant

import io.interlock.spark.audit._
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.CommitInfo
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** The audit records of tables by name, for procedures: of rejected commits beside the log, of rebased
  * ones in it.
  */
object AuditedTable {

  /** What [[conflicts]] returns. */
  val recordSchema: StructType = ConflictRecord.schema

  /** What [[explain]] returns. */
  val explanationSchema: StructType = Explanation.schema

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
    val record = rejectedBy(now, txnId)
      .orElse(committedBy(now, txnId).map { case (version, rebased) =>
        rebased.getOrElse(throw InterlockException.unknownTransaction(
          txnId,
          name,
          s"It committed version $version and passed no other commit"
        ))
      })
      .getOrElse(throw InterlockException.unknownTransaction(txnId, name, whatThereIs(now)))
    Explanation(
      record,
      now.metadata.partitionColumns,
      record.winners.flatMap(winner => winnerAt(now, winner.version)),
      SessionPolicies.readable
    ).toRow
  }

  private def winnerAt(now: Snapshot, version: Long): Option[WinningVersion] =
    new CommitLog(now).info(version).map(WinningVersion.of(version, _))

  private def whatThereIs(now: Snapshot): String = {
    val newest = newestFirst(now).take(MostNamed).map(_.commit.txnId).toSeq
    if (newest.isEmpty) "The table has no records"
    else s"The newest transactions with a record are ${newest.mkString(", ")}"
  }

  /** All records, newest first. Files and commits are read as the iterator advances. */
  private def newestFirst(snapshot: Snapshot): Iterator[ConflictRecord] = {
    val rejected = AuditTrail.folder(snapshot.deltaLog).newestFirst().buffered
    val committed = committedNewestFirst(snapshot).buffered
    def isNewer(record: Rejected) =
      committed.headOption.forall { case (_, _, millis) =>
        record.commit.time.toEpochMilli >= millis
      }
    Iterator.unfold(()) { _ =>
      if (rejected.headOption.exists(isNewer)) Some(Some(rejected.next()) -> (()))
      else
        committed.nextOption().map { case (version, info, millis) =>
          rebased(version, info, millis) -> (())
        }
    }.flatten
  }

  /** The record of a transaction that was rejected. */
  private def rejectedBy(snapshot: Snapshot, txnId: String): Option[Rejected] =
    AuditTrail.folder(snapshot.deltaLog).newestFirst().find(_.commit.txnId == txnId)

  /** The version that a transaction made, and its record where it passed others. */
  private def committedBy(
      snapshot: Snapshot,
      txnId: String
  ): Option[(Long, Option[Rebased])] = {
    committedNewestFirst(snapshot).collectFirst {
      case (version, info, millis) if info.txnId.contains(txnId) =>
        version -> rebased(version, info, millis)
    }
  }

  /** Versions, what each says of itself, and when it was committed. */
  private def committedNewestFirst(snapshot: Snapshot): Iterator[(Long, CommitInfo, Long)] = {
    val commits = new CommitLog(snapshot)
    commits.infosNewestFirst().map { case (version, info) =>
      (version, info, commits.timestamp(version, Some(info)).getOrElse(0L))
    }
  }

  private def rebased(version: Long, info: CommitInfo, millis: Long): Option[Rebased] =
    Rebased.of(version, info, Instant.ofEpochMilli(millis)).filter(_.winners.nonEmpty)
}
