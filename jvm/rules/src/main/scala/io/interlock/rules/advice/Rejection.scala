package io.interlock.rules.advice

import io.interlock.rules.{ConflictKind, OperationClass}

/** The facts of a rejected commit that advice depends on.
  *
  * @param policy
  *   the table's policy when the commit was rejected
  * @param winnerClass
  *   the class of the winner
  * @param operationClass
  *   the class of the attempt
  * @param partitionColumns
  *   the partition columns of the table
  * @param predicate
  *   the attempt's predicate that matched rows the winner changed, or that could not be decided
  * @param undecided
  *   whether that predicate could not be decided
  */
final case class Rejection(
    kind: ConflictKind,
    policy: String,
    winnerClass: Option[OperationClass],
    operationClass: Option[OperationClass],
    partitionColumns: Seq[String],
    predicate: Option[String],
    undecided: Boolean
) {
  def isCompaction: Boolean = operationClass.exists(OperationClass.compactions)
}
