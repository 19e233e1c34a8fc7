package io.interlock.rules

/** A commit that was made after an attempt's read version and before the attempt.
  *
  * @param version
  *   the version it made
  */
final case class Winner(version: Long, operationClass: OperationClass, changed: ChangedScope)

final case class Attempt(operationClass: OperationClass, scope: AttemptScope)

/** A verdict and the cell that gave it.
  *
  * @param cell
  *   the policy's cell; none if no cell applies, because the scopes are disjoint or Delta's checks
  *   decide
  */
final case class Ruling(verdict: Verdict, cell: Option[Cell])

/** Judges an attempt against one winner, as a pure function. The caller judges several winners in
  * the order of their versions; one FAIL fails the attempt.
  */
object Judge {
  def judge(policy: Policy, winner: Winner, attempt: Attempt): Ruling = {
    val classes = Seq(winner.operationClass, attempt.operationClass)
    if (winner.changed == ChangedScope.Nothing) Ruling(Verdict.AsIs, None)
    else if (classes.contains(OperationClass.Metadata)) Ruling(Verdict.ByFiles, None)
    else if (!attempt.scope.overlaps(winner.changed)) Ruling(Verdict.AsIs, None)
    else
      policy.cell(winner.operationClass, attempt.operationClass) match {
        case Some(cell) => Ruling(cell.verdict, Some(cell))
        case None => Ruling(Verdict.Fail, None)
      }
  }
}
