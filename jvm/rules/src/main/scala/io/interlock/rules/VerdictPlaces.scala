package io.interlock.rules

import io.interlock.rules.OperationClass._

/** The cells of a matrix in which each verdict is permitted. A rebase handles only the pairs of
  * classes that it is made for. In other cells it would lose rows or bring deleted ones back, so a
  * policy with it there is refused.
  */
private[rules] object VerdictPlaces {

  /** @param compaction
    *   the policy's class of every compaction but COMPACT MAJOR
    */
  def allow(
      verdict: Verdict,
      earlier: OperationClass,
      later: OperationClass,
      compaction: OperationClass
  ): Boolean = verdict match {
    case Verdict.Fail | Verdict.ByFiles => true
    case Verdict.AsIs => earlier == Append || later == Append
    case Verdict.ByRows => later == Append || later == Mutate
    case Verdict.ReplaceLive => later == Overwrite
    case Verdict.RemapRows => compactions(earlier) && later == Mutate
    case Verdict.RebaseCompaction =>
      (earlier == Append || earlier == Mutate) && compactions(later)
    // Correct because a COMPACT MAJOR rewrites its whole scope, and the earlier one was not a
    // MAJOR.
    case Verdict.Supersede =>
      (earlier == CompactMinor || earlier == compaction) && later == CompactMajor
  }

  /** The permitted cells in words, to follow "can only stand". */
  def of(verdict: Verdict): String = verdict match {
    case Verdict.Fail | Verdict.ByFiles => "anywhere"
    case Verdict.AsIs => "where one of the two is APPEND"
    case Verdict.ByRows => "where the later job is APPEND or MUTATE"
    case Verdict.ReplaceLive => "where the later job is OVERWRITE"
    case Verdict.RemapRows => "where the earlier job is a compaction and the later one MUTATE"
    case Verdict.RebaseCompaction =>
      "where the earlier job is APPEND or MUTATE and the later one a compaction"
    case Verdict.Supersede =>
      "where the earlier job is a compaction but no MAJOR and the later one COMPACT_MAJOR"
  }
}
