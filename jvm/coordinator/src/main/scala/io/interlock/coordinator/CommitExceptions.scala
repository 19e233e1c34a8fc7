package io.interlock.coordinator

import io.delta.storage.commit.CommitFailedException

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

/** A commit was judged against one that was on its way and then not made; it must be judged again.
  */
final class CommitWithdrawnException(version: Long)
    extends CommitFailedException(
      false,
      true,
      s"The commit before version $version, which it was judged against, was not made."
    )
