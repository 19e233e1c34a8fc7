package org.apache.spark.sql.delta.interlock.log

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.CommittedTransaction
import org.apache.spark.sql.delta.hooks.PostCommitHook

/** Writes the checksum of a commit for which none could be derived. */
object ChecksumHook extends PostCommitHook {
  override val name: String = "Interlock checksum"

  override def run(session: SparkSession, made: CommittedTransaction): Unit =
    if (made.postCommitSnapshot.version == made.committedVersion)
      Checksums.write(
        session,
        made.deltaLog,
        made.txnId,
        ChecksummedSnapshot.of(made.postCommitSnapshot)
      )
}
