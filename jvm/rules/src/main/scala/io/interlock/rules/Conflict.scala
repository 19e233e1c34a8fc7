package io.interlock.rules

/** Why a commit was rejected.
  *
  * @param rule
  *   the label of the policy's cell, or the rule that rejects such a commit under every policy
  * @param verdict
  *   the verdict of that cell
  * @param winnerClass
  *   the class of the winner; none if the commit was not judged against one
  * @param winnerOperation
  *   the winner's operation; none if the commit was not judged against one
  * @param winnerVersion
  *   the version that the winner made
  * @param scope
  *   the partitions in which the two overlap, as text, or "the whole table"
  * @param txnId
  *   the id of the rejected commit's transaction
  * @param why
  *   why the later job fails, as a clause
  * @param overlap
  *   for verdicts that compare files or rows: where the two overlap
  * @param beforeWriting
  *   whether the job was stopped before it wrote its files
  */
final case class Conflict(
    kind: ConflictKind.Raised,
    policy: String,
    rule: String,
    verdict: Verdict,
    winnerClass: Option[OperationClass],
    operationClass: OperationClass,
    winnerOperation: Option[String],
    operation: String,
    readVersion: Long,
    winnerVersion: Long,
    scope: String,
    table: String,
    txnId: String,
    why: String,
    overlap: Option[Overlap] = None,
    beforeWriting: Boolean = false
) {

  /** Its condition in the error catalogue. */
  def condition: String = kind.condition

  /** When the job lost, if not at its commit. */
  def phase: Option[String] = Option.when(beforeWriting)("before writing")
}

object Conflict {

  /** The reason why a job fails after a winner, as a clause.
    *
    * @param unproved
    *   if the policy lets both succeed by a rebase: why the rebase could not be proved safe
    */
  def why(
      earlier: OperationClass,
      later: OperationClass,
      unproved: Option[String] = None,
      overlap: Option[Overlap] = None
  ): String = (unproved, overlap) match {
    case (Some(reason), _) =>
      s"$later succeeds after $earlier only if rows can be followed, but $reason"
    case (_, Some(found)) => s"$later fails after $earlier if they overlap, and ${found.why}"
    case _ => s"$later fails after $earlier"
  }

  /** The policies of `known` under which this pair of classes always succeeds. */
  def policiesThatAllow(conflict: Conflict, known: Seq[Policy]): Seq[String] = for {
    policy <- known.filter(_.name != conflict.policy)
    earlier <- conflict.winnerClass
    cell <- cellOf(policy, earlier, conflict.operationClass) if succeeds(cell.verdict)
  } yield policy.name

  /** The policy's cell for a pair of classes, which may be classes of another policy. */
  private[rules] def cellOf(
      policy: Policy,
      earlier: OperationClass,
      later: OperationClass
  ): Option[Cell] = policy.cell(in(policy, earlier), in(policy, later))

  /** Verdicts under which the later job always succeeds. */
  private[rules] val succeeds = Verdict.all.toSet -- Verdict.ifTheyOverlap - Verdict.Fail

  /** The class under `policy` of an operation that may have a class of another policy. */
  private def in(policy: Policy, operation: OperationClass): OperationClass =
    if (OperationClass.compactions(operation) && !policy.classes.contains(operation))
      policy.compaction
    else operation
}
