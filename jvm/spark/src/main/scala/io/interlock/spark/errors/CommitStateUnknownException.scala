package io.interlock.spark.errors

import scala.jdk.CollectionConverters._

import io.interlock.coordinator.{Causes, CommitUnknownException, CoordinatorException}
import org.apache.spark.SparkThrowable

/** It is not known whether a statement's commit was made. Its files are kept, and running it again
  * may do its work twice.
  */
final class CommitStateUnknownException private (
    parameters: Map[String, String],
    cause: CommitUnknownException
) extends RuntimeException(
      ErrorCatalogue.message(CommitStateUnknownException.Condition, parameters),
      cause
    )
    with SparkThrowable {
  override def getCondition: String = CommitStateUnknownException.Condition
  override def getErrorClass: String = getCondition
  override def getSqlState: String = ErrorCatalogue.sqlState(getCondition)
  override def getMessageParameters: java.util.Map[String, String] = parameters.asJava
}

object CommitStateUnknownException {
  private val Condition = "INTERLOCK_COMMIT_STATE_UNKNOWN"

  /** @param cause
    *   the failure, which has the version that the commit wanted, and its transaction
    */
  def of(
      table: String,
      operation: String,
      cause: CommitUnknownException
  ): CommitStateUnknownException = {
    val parameters = Map(
      "table" -> table,
      "operation" -> operation,
      "version" -> cause.version.toString,
      "txnId" -> cause.txnId,
      "reason" -> (Causes.of(cause).last match {
        case refusal: CoordinatorException => InterlockException.ofCoordinator(refusal).getMessage
        case other => StorageFault.described(other)
      })
    )
    new CommitStateUnknownException(parameters, cause)
  }
}
