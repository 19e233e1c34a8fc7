package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.spark.commits.ForeignWriters
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.WinningCommitSummary
import org.apache.spark.sql.delta.interlock.log.{CommitReader, MissedCommits}
import org.apache.spark.sql.delta.util.FileNames

/** Reads the commits that a transaction is judged against, each once.
  *
  * @param isCoordinated
  *   whether to warn of foreign commits among them
  */
final private[transaction] class WinnerReader(table: ReadTable, isCoordinated: => Boolean) {
  private var missed = new MissedCommits(table.log, Nil)

  /** Sets the commits that are known, in place of the former ones. */
  def expect(commits: MissedCommits): Unit = missed = commits

  def read(file: FileStatus): WinningCommitSummary = {
    val found = missed.of(FileNames.deltaVersion(file)) match {
      case Some(body) => CommitReader.summary(body)
      case None => WinningCommitSummary.createFromFileStatus(table.log, file)
    }
    val isThere = file.getLen > 0
    if (isCoordinated && isThere)
      ForeignWriters.note(table.name, table.snapshot, found.commitVersion, found.commitInfo)
    found
  }
}
