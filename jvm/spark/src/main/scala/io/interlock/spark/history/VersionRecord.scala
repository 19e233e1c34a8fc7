package io.interlock.spark.history

import java.sql.Timestamp

import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** What SHOW HISTORY says of a version. What is not known is None, and NULL in the row.
  *
  * @param timeVersion
  *   the timestamp, where the version logically added or removed at least one row
  * @param timestamp
  *   the one that TIMESTAMP AS OF goes by
  * @param winners
  *   versions of other commits that it passed, with the policy's cells that let it and what these
  *   say; None for commits that are not ours
  * @param foreign
  *   whether the commit is not Interlock's although the table had a policy
  */
final private[spark] case class VersionRecord(
    version: Long,
    timeVersion: Option[Timestamp],
    timestamp: Option[Timestamp],
    operationClass: Option[String],
    policy: Option[String],
    operation: Option[String],
    operationParameters: Option[Map[String, String]],
    winners: Option[Seq[Long]],
    rules: Option[Seq[Option[String]]],
    verdicts: Option[Seq[Option[String]]],
    foreign: Option[Boolean],
    rowsIn: Option[Long],
    rowsOut: Option[Long],
    filesAdded: Long,
    filesRemoved: Long,
    user: Option[String],
    txnId: Option[String],
    readVersion: Option[Long],
    block: Option[String]
) {

  /** By [[VersionRecord.schema]]. */
  def toRow: Row = Row(productIterator.map {
    case Some(values: Seq[_]) => values.map(known)
    case value => known(value)
  }.toSeq: _*)

  private def known(value: Any): Any = value match {
    case fact: Option[Any] => fact.getOrElse(null)
    case fact => fact
  }
}

private[spark] object VersionRecord {
  val schema: StructType = new StructType()
    .add("version", LongType, nullable = false)
    .add("time_version", TimestampType)
    .add("timestamp", TimestampType)
    .add("class", StringType)
    .add("policy", StringType)
    .add("operation", StringType)
    .add("operation_parameters", MapType(StringType, StringType))
    .add("winners", ArrayType(LongType, containsNull = false))
    .add("rules", ArrayType(StringType))
    .add("verdicts", ArrayType(StringType))
    .add("foreign", BooleanType)
    .add("rows_in", LongType)
    .add("rows_out", LongType)
    .add("files_added", LongType, nullable = false)
    .add("files_removed", LongType, nullable = false)
    .add("user", StringType)
    .add("txn_id", StringType)
    .add("read_version", LongType)
    .add("block", StringType)
}
