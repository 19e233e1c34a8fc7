package io.interlock.rules

/** What a claim protects: a job that must not lose.
  *
  * @param operationClass
  *   the job's class; none if it may have any
  * @param partitions
  *   values of partition columns: the job is in the partitions that have all values of one entry; in
  *   the whole table if there is no entry
  * @param holdsAll
  *   whether any commit makes the job lose, whatever the policy says, as with RESTORE
  */
final case class ClaimScope(
    operationClass: Option[OperationClass],
    partitions: Seq[Map[String, String]],
    holdsAll: Boolean = false
) {

  /** Whether the job may lose against a commit, so that the commit must wait.
    *
    * @param isBlindAppend
    *   whether the commit only appends, and counts as made after the job by the isolation level
    */
  def holds(policy: Policy, commit: Winner, isBlindAppend: Boolean): Boolean =
    holdsAll || classes(policy).exists(job =>
      Judge.judge(policy, commit, Attempt(job, scope)).verdict match {
        case Verdict.Fail => true
        case verdict => Verdict.ifTheyOverlap(verdict) && !isBlindAppend
      }
    )

  /** Whether one of two jobs with claims may lose against the other. */
  def conflictsWith(policy: Policy, other: ClaimScope): Boolean =
    holdsAll || other.holdsAll || !isDisjointFrom(other) && classes(policy).exists(mine =>
      other.classes(policy).exists(theirs =>
        ClaimScope.mayLose(policy, mine, theirs) || ClaimScope.mayLose(policy, theirs, mine)
      )
    )

  private def classes(policy: Policy) = operationClass.fold(policy.classes)(Seq(_))

  private def scope: AttemptScope =
    if (partitions.isEmpty) AttemptScope.WholeTable
    else
      AttemptScope.Partitions(
        Set.empty,
        partitions.map(values =>
          (partition: Partition) => values.toSet.subsetOf(partition.values.toSet)
        )
      )

  private def isDisjointFrom(other: ClaimScope) = partitions.nonEmpty &&
    other.partitions.nonEmpty && partitions.forall(mine =>
      other.partitions.forall(theirs =>
        mine.exists { case (column, value) => theirs.get(column).exists(_ != value) }
      )
    )
}

object ClaimScope {
  private def mayLose(policy: Policy, earlier: OperationClass, later: OperationClass) = {
    val commit = Winner(0, earlier, ChangedScope.WholeTable)
    ClaimScope(Some(later), Nil).holds(policy, commit, isBlindAppend = false)
  }
}
