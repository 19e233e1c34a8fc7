package org.apache.spark.sql.delta.interlock

import scala.collection.mutable

import org.apache.spark.sql.delta.WinningCommitSummary

/** The blind appends that an attempt has passed without a look, since under WriteSerializable they
  * count as committed behind it.
  *
  * That ends with a winner that has read rows of such an append and comes before the attempt: no order
  * is left in which only blind appends move, unless the attempt would not have read these rows either.
  */
final private[interlock] class PassedAppends {

  /** @param files
    *   that hold its rows now
    */
  private case class Passed(append: WinningCommitSummary, files: Set[String])

  private val passed = mutable.SortedMap.empty[Long, Passed]

  /** Takes note of a winner.
    *
    * @return
    *   the appends of which it has read rows, each once
    */
  def readBy(winner: WinningCommitSummary): Seq[WinningCommitSummary] = {
    val version = winner.commitVersion
    passed.remove(version) // of a commit that was withdrawn
    if (winner.isBlindAppendOption.contains(true)) {
      passed += version -> Passed(winner, winner.addedFiles.map(_.path).toSet)
      Nil
    } else if (changesData(winner)) {
      val read = passed.rangeUntil(version).values.filter(hasRead(winner, _)).map(_.append).toSeq
      passed --= read.map(_.commitVersion)
      read
    } else {
      follow(winner)
      Nil
    }
  }

  private def changesData(winner: WinningCommitSummary): Boolean =
    winner.addedFiles.exists(_.dataChange) || winner.removedFiles.exists(_.dataChange)

  /** UPDATE and DELETE change every row that they read, unless they say otherwise, which only those of
    * Interlock can. Others have read what there was.
    */
  private def hasRead(winner: WinningCommitSummary, earlier: Passed): Boolean =
    if (readsWhatItChanges(winner)) winner.removedFiles.exists(file => earlier.files(file.path))
    else winner.commitInfo.flatMap(_.readVersion).forall(_ >= earlier.append.commitVersion)

  private def readsWhatItChanges(winner: WinningCommitSummary): Boolean =
    winner.commitInfo.exists(info =>
      Set("UPDATE", "DELETE")(info.operation) && info.tags.exists(tags =>
        tags.contains(CommitTags.Class) && !tags.contains(CommitTags.ReadsOthers)
      )
    )

  /** Notes where a compaction has put the rows. */
  private def follow(compaction: WinningCommitSummary): Unit = {
    val removed = compaction.removedFiles.map(_.path).toSet
    passed.mapValuesInPlace { (version, earlier) =>
      if (version > compaction.commitVersion || !earlier.files.exists(removed)) earlier
      else earlier.copy(files = earlier.files -- removed ++ compaction.addedFiles.map(_.path))
    }
  }
}
