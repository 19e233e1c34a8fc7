package io.interlock.rules

import scala.collection.immutable.SortedMap

/** What a commit says of itself, as far as the serial order of commits depends on it.
  *
  * @param isBlindAppend
  *   whether it added rows and had read nothing
  * @param changesData
  *   whether it did more than move rows between files
  * @param readsWhatItChanges
  *   whether it changed every row that it had read
  * @param readVersion
  *   the version that it had read; none where it does not say
  * @param added
  *   paths of the files that it added; `removed` of those that it removed
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

/** The blind appends that an attempt has passed without a look, since under WriteSerializable they
  * count as committed behind it.
  *
  * That ends with a winner that has read rows of such an append and comes before the attempt: no order
  * is left in which only blind appends move, unless the attempt would not have read these rows either.
  *
  * @tparam A
  *   a commit, as the caller knows it
  */
final class SkippedBlindAppends[A] private (
    skipped: SortedMap[Long, SkippedBlindAppends.Skipped[A]]
) {
  import SkippedBlindAppends._

  /** Takes note of the next winner.
    *
    * @return
    *   the appends of which it has read rows, each once, and what is left
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

  /** Where a compaction has put the rows of files. */
  private def moved(files: Set[String], compaction: SerialFacts): Set[String] =
    if (files.exists(compaction.removed)) files -- compaction.removed ++ compaction.added
    else files
}

object SkippedBlindAppends {
  def none[A]: SkippedBlindAppends[A] = new SkippedBlindAppends(SortedMap.empty[Long, Skipped[A]])

  /** @param files
    *   that hold its rows now
    */
  final private case class Skipped[A](append: A, files: Set[String])
}
