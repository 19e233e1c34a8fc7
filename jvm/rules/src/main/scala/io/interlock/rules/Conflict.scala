package io.interlock.rules

/** The facts of a rejected commit.
  *
  * @param rule
  *   the label of the policy's cell
  * @param verdict
  *   what that cell says
  * @param scope
  *   the partitions that met, as text, or "the whole table"
  * @param attempt
  *   the id of the later job's transaction
  * @param unproved
  *   where the policy lets both succeed by a rebase: why the rebase could not be proved safe
  * @param overlap
  *   where the policy asks whether they met: where they did
  */
final case class Conflict(
    kind: ConflictKind.OfData,
    policy: String,
    rule: String,
    verdict: Verdict,
    earlierClass: OperationClass,
    laterClass: OperationClass,
    earlierOperation: String,
    laterOperation: String,
    readVersion: Long,
    winnerVersion: Long,
    scope: String,
    table: String,
    attempt: String,
    unproved: Option[String] = None,
    overlap: Option[Overlap] = None
) {

  /** Why the later job fails, as a clause. */
  def why: String = (unproved, overlap) match {
    case (Some(reason), _) =>
      s"$laterClass succeeds after $earlierClass only if rows can be followed, but $reason"
    case (_, Some(met)) => s"$laterClass fails after $earlierClass if they meet, and ${met.why}"
    case _ => s"$laterClass fails after $earlierClass"
  }
}

object Conflict {

  /** The policies of `known` under which this pair of classes always succeeds. */
  def policiesThatAllow(conflict: Conflict, known: Seq[Policy]): Seq[String] =
    known.filter(_.name != conflict.policy).filter { policy =>
      cellOf(policy, conflict.earlierClass, conflict.laterClass)
        .exists(cell => succeeds(cell.verdict))
    }.map(_.name)

  /** The cell of a pair of classes that another policy may have named. */
  private[rules] def cellOf(
      policy: Policy,
      earlier: OperationClass,
      later: OperationClass
  ): Option[Cell] = policy.cell(in(policy, earlier), in(policy, later))

  /** Verdicts under which the later job succeeds whatever the two did. */
  private[rules] val succeeds = Verdict.all.toSet -- Verdict.ifTheyMeet - Verdict.Fail

  /** The class that a compaction has under another policy. */
  private def in(policy: Policy, operation: OperationClass): OperationClass =
    if (OperationClass.compactions(operation) && !policy.classes.contains(operation))
      policy.compaction
    else operation
}
