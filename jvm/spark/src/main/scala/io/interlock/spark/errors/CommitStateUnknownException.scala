package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkThrowable

/** Nobody could say whether a statement's commit was made: neither success nor failure. Its files
  * stay, and running it again may do its work twice.
  *
  * @param txnId
  *   of the commitInfo to look for
  * @param version
  *   the one that the commit wanted
  */
final class CommitStateUnknownException(
    val table: String,
    val operation: String,
    val version: Long,
    val txnId: String,
    cause: Throwable
) extends RuntimeException(
      ErrorCatalogue.message(
        CommitStateUnknownException.Condition,
        CommitStateUnknownException.parameters(table, operation, version, txnId)
      ),
      cause
    )
    with SparkThrowable {
  override def getCondition: String = CommitStateUnknownException.Condition
  override def getErrorClass: String = getCondition
  override def getSqlState: String = ErrorCatalogue.sqlState(getCondition)
  override def getMessageParameters: java.util.Map[String, String] =
    CommitStateUnknownException.parameters(table, operation, version, txnId).asJava
}

private object CommitStateUnknownException {
  val Condition = "INTERLOCK_COMMIT_STATE_UNKNOWN"

  def parameters(
      table: String,
      operation: String,
      version: Long,
      txnId: String
  ): Map[String, String] = Map(
    "table" -> table,
    "operation" -> operation,
    "version" -> version.toString,
    "txnId" -> txnId
  )
}
