package org.apache.spark.sql.delta.interlock.commit

import io.delta.storage.commit.Commit
import org.apache.spark.sql.delta.hooks.{CheckpointHook, PostCommitHook}
import org.apache.spark.sql.delta.interlock.log.{BackgroundCheckpoints, ChecksumHook, LogListing}
import org.apache.spark.sql.delta.{LogSegment, Snapshot, hooks}

/** What follows a commit to a table with a coordinator. */
private[interlock] object AfterCommit {

  /** Delta's post-commit hooks, with those for checkpoints and checksums replaced by Interlock's.
    *
    * @param hasChecksum
    *   whether the commit has its `.crc` already
    */
  def hooksFor(deltas: Seq[PostCommitHook], hasChecksum: Boolean): Seq[PostCommitHook] =
    deltas.collect {
      case CheckpointHook => BackgroundCheckpoints
      case hooks.ChecksumHook if !hasChecksum => ChecksumHook
      case other if other != hooks.ChecksumHook => other
    }

  /** The snapshot after a large commit; a checkpoint of it is begun. */
  def snapshot(
      statement: Statement,
      version: Long,
      commit: Commit,
      before: LogSegment
  ): Snapshot = {
    import statement.{session, table}
    val after = LogListing.complete(
      table.log.updateAfterCommit(version, Some(commit), None, before, table.catalogTable)
    )
    BackgroundCheckpoints.write(session, after, table.catalogTable)
    after
  }
}
