package org.apache.spark.sql.delta.interlock

import scala.collection.mutable

import org.apache.spark.sql.delta.WinningCommitSummary
import org.apache.spark.sql.delta.actions.{AddCDCFile, FileAction}

/** The blind appends that an attempt has passed without a look, since under WriteSerializable they
  * count as committed behind it.
  *
  * That ends with a winner that has read such an append and comes before the attempt: no order is left
  * in which only blind appends move, unless the attempt would not have read the rows either.
  */
final private[interlock] class PassedAppends {
  private val appends = mutable.SortedMap.empty[Long, WinningCommitSummary]

  /** Takes note of a winner.
    *
    * @return
    *   the appends that it has read, each once; without a read version all before it
    */
  def readBy(winner: WinningCommitSummary): Seq[WinningCommitSummary] = {
    val version = winner.commitVersion
    appends.remove(version) // of a commit that was withdrawn
    if (winner.isBlindAppendOption.contains(true)) {
      appends += version -> winner
      Nil
    } else if (!changesData(winner)) Nil
    else {
      val last = winner.commitInfo.flatMap(_.readVersion).getOrElse(version - 1)
      val read = appends.rangeUntil(math.min(last + 1, version)).toSeq
      appends --= read.map(_._1)
      read.map(_._2)
    }
  }

  private def changesData(winner: WinningCommitSummary): Boolean = winner.actions.exists {
    case _: AddCDCFile => false
    case file: FileAction => file.dataChange
    case _ => false
  }
}
