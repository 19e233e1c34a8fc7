package io.interlock.coordinator

/** It is not known whether a commit was made.
  *
  * @param txnId
  *   the id to look for in the table's history
  * @param version
  *   the version that the commit wanted
  */
final class CommitUnknownException(
    val log: String,
    val version: Long,
    val txnId: String,
    cause: Throwable
) extends RuntimeException(s"No answer whether $txnId is version $version of $log.", cause)
