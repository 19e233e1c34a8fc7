package io.interlock.rules

/** Why a commit was rejected. Its error, its record and its explanation are all made of this value;
  * [[ConflictFacts]] names its facts for them.
  *
  * @param winner
  *   the commit that it lost against; none if Delta does not name one
  * @param why
  *   what the winner did, as a clause without names of classes and files
  * @param rule
  *   the label of the policy's cell, or the rule that rejects such a commit under every policy; none
  *   if a check of Delta's rejected it
  * @param verdict
  *   the verdict of that cell
  * @param ruling
  *   what the rule says of the two classes, as a clause
  * @param scope
  *   the partitions in which the two overlap, as text, or [[Conflict.WholeTable]]
  * @param txnId
  *   the id of the rejected commit's transaction
  * @param beforeWriting
  *   whether the job was stopped before it wrote its files
  */
final case class Conflict(
    kind: ConflictKind,
    policy: String,
    operation: String,
    operationClass: OperationClass,
    readVersion: Long,
    table: String,
    txnId: String,
    winner: Option[WinningCommit],
    why: String,
    rule: Option[String] = None,
    verdict: Option[Verdict] = None,
    ruling: Option[String] = None,
    scope: Option[String] = None,
    overlap: Overlap = Overlap(),
    beforeWriting: Boolean = false
) {
  def winnerClass: Option[OperationClass] = winner.flatMap(_.operationClass)

  /** Whom it lost against, to follow "lost against". */
  def lostTo: String = winner.fold("another commit")(it => s"version ${it.version}")

  /** When the job lost, if not at its commit. */
  def phase: Option[String] = Option.when(beforeWriting)("before writing")

  /** What happened, and what the policy lets happen, in two sentences. */
  def summary: String = {
    val always = kind match {
      case _: ConflictKind.OfData if rule.nonEmpty =>
        s"Policy $policy ${Policies.lets(policy, verdict.map(_.name))}."
      case ConflictKind.MetadataChanged =>
        "Running jobs pass harmless changes of metadata only, and only under a policy that compares " +
          "files or rows."
      case _ => "It is so under every policy."
    }
    s"$operation lost: $why. $always"
  }
}

object Conflict {

  /** The scope of a conflict that is not confined to partitions. */
  val WholeTable = "the whole table"

  /** What a cell says of two classes, as a clause.
    *
    * @param unproved
    *   if the policy lets both succeed by a rebase: why the rebase could not be proved safe
    */
  def ruling(
      verdict: Verdict,
      earlier: OperationClass,
      later: OperationClass,
      unproved: Option[String]
  ): String = unproved match {
    case Some(reason) => s"$later succeeds after $earlier only if rows can be followed, but $reason"
    case _ if Verdict.ifTheyOverlap(verdict) => s"$later fails after $earlier if they overlap"
    case _ => s"$later fails after $earlier"
  }
}
