package org.apache.spark.sql.delta.interlock.commit

import io.interlock.coordinator.CommitQueue
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient
import org.apache.spark.sql.delta.interlock.table.ReadTable
import org.apache.spark.sql.delta.util.FileNames

/** A table's log beside what its queue knows of it. The log may be put back to an earlier state, from
  * a backup; the queue then forgets its commits, and a commit is judged again from the start.
  *
  * @param first
  *   the commit before it is judged
  */
final private[interlock] class QueuedLog(
    table: ReadTable,
    queue: CommitQueue,
    client: TableCommitCoordinatorClient,
    first: Attempt
) {

  /** The attempt; the first one if the last winner that it was judged against is gone. Another
    * commit may have that version now.
    */
  def current(attempt: Attempt): Attempt =
    if (attempt.winners.lastOption.forall(table.has)) attempt
    else {
      queue.startOver()
      first
    }

  /** Whether the queue's commits from the attempt's version on are of the log that it was judged
    * against; None if the queue does not tell.
    */
  def isSame(attempt: Attempt): Option[Boolean] = attempt.winners.lastOption
    .orElse(table.snapshot.logSegment.deltas.lastOption)
    .filter(file => file.getLen > 0 && FileNames.deltaVersion(file) == attempt.next - 1)
    .flatMap(queue.knows(attempt.next - 1, _))

  /** Lets the queue forget its commits if they do not follow those that the attempt was judged
    * against, or if the next one is gone.
    */
  def startOverIfOther(attempt: Attempt): Unit = {
    if (isSame(attempt).contains(false)) queue.startOver()
    val next = queue.at(attempt.next).filter(_.isThere)
    if (!next.forall(known => table.has(known.file))) queue.startOver()
  }

  /** The commits in the log from the attempt's version on.
    *
    * @throws IllegalStateException
    *   if one of them is missing: Delta looks for gaps only behind the newest checkpoint
    */
  def listed(attempt: Attempt): Seq[FileStatus] = {
    val files = table.listedSince(attempt.winners, client)
    val missing = (attempt.next until attempt.next + files.size)
      .diff(files.map(FileNames.deltaVersion))
    missing.headOption.foreach(version =>
      throw new IllegalStateException(s"The log has no version $version, but later ones.")
    )
    files
  }
}
