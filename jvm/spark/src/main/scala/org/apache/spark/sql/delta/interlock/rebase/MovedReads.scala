package org.apache.spark.sql.delta.interlock.rebase

import org.apache.spark.sql.delta.{CurrentTransactionInfo, WinningCommitSummary}

/** Follows what an attempt has read to the files that hold it after a winner which wrote rows anew. */
private[interlock] object MovedReads {

  /** The attempt, reading what the winner made of the files that it has read. By partition only: that
    * holds without a record of where rows went too.
    */
  def follow(info: CurrentTransactionInfo, winner: WinningCommitSummary): CurrentTransactionInfo = {
    val gone = winner.removedFiles.map(_.path).toSet -- winner.addedFiles.map(_.path)
    val (moved, still) = info.readFiles.partition(file => gone(file.path))
    if (moved.isEmpty) info
    else {
      val partitions = moved.map(_.partitionValues)
      val near = winner.addedFiles.filter(file => partitions(file.partitionValues))
      // A partition's value has several spellings, and one that is left empty has no file.
      val areFound = partitions.subsetOf(near.map(_.partitionValues).toSet)
      info.copy(readFiles = still ++ (if (areFound) near else winner.addedFiles))
    }
  }
}
