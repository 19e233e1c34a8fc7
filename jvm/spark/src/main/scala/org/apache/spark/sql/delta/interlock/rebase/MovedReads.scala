package org.apache.spark.sql.delta.interlock.rebase

import org.apache.spark.sql.delta.{CurrentTransactionInfo, WinningCommitSummary}

/** Replaces the files that an attempt has read by the files to which a winner, such as a
  * compaction, has moved their rows.
  */
private[interlock] object MovedReads {

  /** The attempt with the new files among those that it has read. They are found by partition, so
    * that this also works if the winner did not record where rows went.
    */
  def follow(info: CurrentTransactionInfo, winner: WinningCommitSummary): CurrentTransactionInfo = {
    val gone = winner.removedFiles.map(_.path).toSet -- winner.addedFiles.map(_.path)
    val (moved, still) = info.readFiles.partition(file => gone(file.path))
    if (moved.isEmpty) info
    else {
      val partitions = moved.map(_.partitionValues)
      val near = winner.addedFiles.filter(file => partitions(file.partitionValues))
      // The log may spell a partition's value in several ways, and a partition may have no new
      // file.
      val areFound = partitions.subsetOf(near.map(_.partitionValues).toSet)
      info.copy(readFiles = still ++ (if (areFound) near else winner.addedFiles))
    }
  }
}
