package org.apache.spark.sql.delta.interlock.commit

import io.interlock.coordinator.{CommitBody, CommitQueue}
import io.interlock.spark.commits.ForeignWriters
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.WinningCommitSummary
import org.apache.spark.sql.delta.interlock.log.{CommitReader, MissedCommits}
import org.apache.spark.sql.delta.interlock.table.ReadTable
import org.apache.spark.sql.delta.util.FileNames

/** Finds and reads the commits that a transaction is judged against, each once.
  *
  * @param warns
  *   whether to warn of foreign commits among them
  */
final private[interlock] class Winners(table: ReadTable, warns: => Boolean) {
  private var missed = new MissedCommits(table.log, Nil)

  def read(file: FileStatus): WinningCommitSummary = {
    val found = missed.of(FileNames.deltaVersion(file)) match {
      case Some(body) => CommitReader.summary(body)
      case None => WinningCommitSummary.createFromFileStatus(table.log, file)
    }
    val isThere = file.getLen > 0
    if (warns && isThere)
      ForeignWriters.note(table.name, table.snapshot, found.commitVersion, found.commitInfo)
    found
  }

  /** Makes commits that the queue knows the next ones to read.
    *
    * @return
    *   their files
    */
  def ofQueue(known: Seq[CommitBody]): Seq[FileStatus] = {
    missed = new MissedCommits(table.log, known)
    known.map(_.file)
  }

  /** Makes commits in the log the next ones to read; the queue learns those that it does not know.
    *
    * @param files
    *   their files
    * @param view
    *   the queue's view, which they complete
    */
  def ofLog(files: Seq[FileStatus], queue: CommitQueue, view: CommitQueue.View): Seq[FileStatus] = {
    missed = new MissedCommits(
      table.log,
      view.commits.filter(_.isThere),
      files,
      queue.learn(view.generation, _)
    )
    files
  }
}
