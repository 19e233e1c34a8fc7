package io.interlock.rules

import scala.collection.immutable.SortedMap

/** The facts of a commit on which the serial order of commits depends.
  *
  * @param isBlindAppend
  *   whether it added rows and had read nothing
  * @param changesData
  *   whether it changed data, and did not only move rows between files
  * @param readsWhatItChanges
  *   whether it changed every row that it had read
  * @param readVersion
  *   the version that it had read; none if it is not known
  * @param added
  *   paths of the files that it added; `removed` has those that it removed
  */
final case class SerialFacts(
    version: Long,
    isBlindAppend: Boolean,
    changesData: Boolean,
    readsWhatItChanges: Boolean,
    readVersion: Option[Long],
    added: Set[String],
    removed: Set[String]
)

/** The blind appends that an attempt has passed without comparing rows, because WriteSerializable
  * lets them count as committed after the attempt.
  *
  * A later winner may have read rows of such an append. The append then comes before that winner,
  * and the winner before the attempt. So the append cannot be moved after the attempt any more, and
  * its rows must be compared with the attempt's reads after all.
  *
  * @tparam A
  *   a commit, as the caller knows it
  */
final class SkippedBlindAppends[A] private (
    skipped: SortedMap[Long, SkippedBlindAppends.Skipped[A]]
) {
  import SkippedBlindAppends._

  /** Removes the appends whose rows the next winner has read.
    *
    * @return
    *   the appends whose rows it has read, each once, and the remaining ones
    */
  def readBy(winner: A, facts: SerialFacts): (Seq[A], SkippedBlindAppends[A]) =
    if (facts.isBlindAppend)
      Nil -> new SkippedBlindAppends(skipped + (facts.version -> Skipped(winner, facts.added)))
    else if (facts.changesData) {
      val (read, left) = skipped.partition { case (version, append) =>
        hasRead(facts, version, append.files)
      }
      read.values.map(_.append).toSeq -> new SkippedBlindAppends(left)
    } else Nil -> new SkippedBlindAppends(skipped.map { case (version, append) =>
      version -> append.copy(files = moved(append.files, facts))
    })

  private def hasRead(winner: SerialFacts, version: Long, files: Set[String]): Boolean =
    if (winner.readsWhatItChanges) winner.removed.exists(files)
    else winner.readVersion.forall(_ >= version)

  /** The files that hold the rows of `files` after a compaction. */
  private def moved(files: Set[String], compaction: SerialFacts): Set[String] =
    if (files.exists(compaction.removed)) files -- compaction.removed ++ compaction.added
    else files
}

object SkippedBlindAppends {
  def none[A]: SkippedBlindAppends[A] = new SkippedBlindAppends(SortedMap.empty[Long, Skipped[A]])

  /** @param files
    *   the files that hold its rows now
    */
  final private case class Skipped[A](append: A, files: Set[String])
}
