package io.interlock.rules

import io.interlock.rules.MetadataPart._

/** What becomes of two changes of one table's metadata.
  *
  * @param base
  *   the parts of the metadata that both have read, with their values
  * @param winner
  *   the parts after the first change
  * @param attempt
  *   the parts after the second change
  * @param addsNulls
  *   whether a new column is NULL in all rows of files that do not have it
  */
final class MetadataMerge(
    base: Map[MetadataPart, Any],
    winner: Map[MetadataPart, Any],
    attempt: Map[MetadataPart, Any]
)(addsNulls: Column => Boolean) {
  private val byWinner = changed(winner)
  private val byAttempt = changed(attempt)

  /** What only one of the two changed, or both in different ways. Equal changes are one change. */
  private val (ofWinner, ofAttempt) = (byWinner.filter(differ), byAttempt.filter(differ))

  /** The parts after both changes, or why the attempt cannot follow the winner, as a clause to follow
    * the winner's name.
    *
    * @param writesData
    *   whether the attempt writes files, which know nothing of the winner's change
    */
  def merged(writesData: Boolean): Either[String, Map[MetadataPart, Any]] = {
    val inTwoWays = first(ofWinner.intersect(ofAttempt)).map(part =>
      (value(winner, part), value(attempt, part)) match {
        case (theirs, own) if part != MetadataPart.Definition && theirs != own =>
          s"changed ${part.text} to $theirs, and this job to $own"
        case _ => s"changed ${part.text}, and this job changes it in another way"
      }
    )
    val harmful = first((if (writesData) byWinner else ofWinner).filterNot(isHarmless))
      .map(part => s"changed ${part.text}")
    val unseen = for {
      theirs <- first(ofWinner.filterNot(isInert))
      own <- first(ofAttempt.filterNot(isHarmless))
    } yield s"changed ${theirs.text}, and this job changes ${own.text}"
    inTwoWays.orElse(harmful).orElse(unseen)
      .toLeft(winner -- byAttempt ++ attempt.view.filterKeys(byAttempt))
  }

  private def changed(after: Map[MetadataPart, Any]) =
    (base.keySet ++ after.keySet).filter(part => base.get(part) != after.get(part))

  private def differ(part: MetadataPart) = winner.get(part) != attempt.get(part)

  /** Whether a change matters to nobody. */
  private def isInert(part: MetadataPart) = part match {
    case TableComment => true
    case Property(key) => HarmlessProperties.contain(key)
    case _ => false
  }

  /** Whether a change leaves jobs right that know nothing of it: those that write data, and other
    * changes of this kind.
    */
  private def isHarmless(part: MetadataPart) = part match {
    case column: Column => !base.contains(column) && addsNulls(column)
    case ColumnComment(_) => true
    case other => isInert(other)
  }

  private def first(parts: Set[MetadataPart]) = parts.minByOption(_.text)

  private def value(of: Map[MetadataPart, Any], part: MetadataPart) =
    of.getOrElse(part, "nothing").toString
}
