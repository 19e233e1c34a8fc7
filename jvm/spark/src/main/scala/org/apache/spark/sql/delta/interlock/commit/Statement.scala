package org.apache.spark.sql.delta.interlock.commit

import io.interlock.coordinator.CommitUnknownException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.interlock.table.ReadTable

/** A statement that writes a table, as the parts of its commit know it.
  *
  * @param table
  *   the table as the statement has read it
  * @param txnId
  *   Delta's id of its transaction
  * @param startNanos
  *   when the transaction began, by [[System.nanoTime]]
  * @param block
  *   the id of the atomic block whose commit it is, if it is one
  */
final private[interlock] class Statement(
    val session: SparkSession,
    val table: ReadTable,
    val txnId: String,
    val startNanos: Long,
    block: => Option[String]
) {
  def ofBlock: Option[String] = block

  val staged = new StagedFiles(table.log)
  val times = new CommitTimes

  /** Whether its commit is in the log, even if a later step fails. Set once, by the thread that
    * commits.
    */
  @volatile var isMade = false

  /** The error if nobody can say whether the commit was made at this version. */
  def unknown(version: Long, cause: Throwable): CommitUnknownException =
    new CommitUnknownException(table.log.logPath.toString, version, txnId, cause)
}
