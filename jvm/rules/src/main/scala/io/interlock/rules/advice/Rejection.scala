package io.interlock.rules.advice

import io.interlock.rules.{ConflictKind, OperationClass}

/** A rejected commit, as far as advice depends on it.
  *
  * @param policy
  *   that of the table when it was rejected
  * @param earlier
  *   the class of the winner
  * @param later
  *   the class of the attempt
  * @param partitionColumns
  *   those of the table
  * @param predicate
  *   the attempt's predicate that selected rows of the winner, or could not be decided
  * @param undecided
  *   whether it could not be decided
  */
final case class Rejection(
    kind: ConflictKind,
    policy: String,
    earlier: Option[OperationClass],
    later: Option[OperationClass],
    partitionColumns: Seq[String],
    predicate: Option[String],
    undecided: Boolean
) {
  def isCompaction: Boolean = later.exists(OperationClass.compactions)
}
