package org.apache.spark.sql.delta.interlock

import scala.collection.immutable.SortedMap

import org.apache.spark.sql.delta.WinningCommitSummary

/** The blind appends that an attempt has passed without a look, since under WriteSerializable they
  * count as committed behind it.
  *
  * That ends with a winner that has read rows of such an append and comes before the attempt: no order
  * is left in which only blind appends move, unless the attempt would not have read these rows either.
  */
final private[interlock] class PassedAppends private (
    passed: SortedMap[Long, PassedAppends.Passed]
) {
  import PassedAppends._

  /** Takes note of the next winner.
    *
    * @return
    *   the appends of which it has read rows, each once, and what is left
    */
  def readBy(winner: WinningCommitSummary): (Seq[WinningCommitSummary], PassedAppends) =
    if (winner.isBlindAppendOption.contains(true)) {
      val append = Passed(winner, winner.addedFiles.map(_.path).toSet)
      Nil -> new PassedAppends(passed + (winner.commitVersion -> append))
    } else if (changesData(winner)) {
      val read = passed.values.filter(hasRead(winner, _)).map(_.append).toSeq
      read -> new PassedAppends(passed -- read.map(_.commitVersion))
    } else Nil -> new PassedAppends(follow(winner))

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

  /** Where a compaction has put the rows. */
  private def follow(compaction: WinningCommitSummary): SortedMap[Long, Passed] = {
    val removed = compaction.removedFiles.map(_.path).toSet
    def isMoved(earlier: Passed) = earlier.files.exists(removed)
    val moved = passed.collect {
      case (version, earlier) if isMoved(earlier) =>
        version -> earlier.copy(files =
          earlier.files -- removed ++ compaction.addedFiles.map(_.path)
        )
    }
    passed ++ moved
  }
}

private[interlock] object PassedAppends {
  val none: PassedAppends = new PassedAppends(SortedMap.empty[Long, Passed])

  /** @param files
    *   that hold its rows now
    */
  final private[interlock] case class Passed(append: WinningCommitSummary, files: Set[String])
}
