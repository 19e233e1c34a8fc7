package io.interlock.rules.advice

import io.interlock.rules._

/** How both jobs could have succeeded, and whether it helps to run the later one again.
  *
  * @param policies
  *   policies under which this pair always succeeds
  * @param policiesByFiles
  *   policies under which it succeeds if the two touch different files
  * @param policiesByRows
  *   policies under which it succeeds if the two touch different rows
  * @param layout
  *   the predicate, the partitioning or the order that keeps such jobs apart, as a sentence
  * @param retryHelps
  *   whether the statement may succeed when it is run again
  * @param retry
  *   whether it helps and why, as a sentence
  */
final case class Advice(
    policies: Seq[String],
    policiesByFiles: Seq[String],
    policiesByRows: Seq[String],
    layout: String,
    retryHelps: Boolean,
    retry: String
)

object Advice {

  /** @param partitionColumns
    *   the partition columns of the table
    * @param known
    *   the policies to choose from
    */
  def of(conflict: Conflict, partitionColumns: Seq[String], known: Seq[Policy]): Advice = {
    val verdicts = conflict.kind match {
      case _: ConflictKind.OfData => verdictsOf(conflict, known)
      case _ => Nil
    }
    def under(suits: Verdict => Boolean) =
      verdicts.collect { case (policy, verdict) if suits(verdict) => policy.name }
    // Rows that could not be followed under this policy cannot be under another one.
    val succeeds = always -- conflict.verdict.filter(always).toSeq.flatMap(_ => rebases)
    val (retryHelps, retry) = retryOf(conflict)
    Advice(
      policies = under(succeeds).filter(_ != conflict.policy),
      policiesByFiles = under(Set(Verdict.ByFiles)),
      policiesByRows = under(_ == Verdict.ByRows),
      layout = layoutOf(conflict, partitionColumns),
      retryHelps = retryHelps,
      retry = retry
    )
  }

  private def verdictsOf(conflict: Conflict, known: Seq[Policy]): Seq[(Policy, Verdict)] =
    for {
      policy <- known
      earlier <- conflict.winnerClass.toSeq
      later = in(policy, conflict.operationClass)
      cell <- policy.cell(in(policy, earlier), later).toSeq
    } yield policy -> cell.verdict

  private val rebases = Verdict.needRowsFollowed + Verdict.ReplaceLive

  /** Verdicts under which the later job succeeds, if its rows can be followed. */
  private val always = rebases + Verdict.AsIs

  /** The class under `policy` of an operation that may have a class of another policy. */
  private def in(policy: Policy, operation: OperationClass): OperationClass =
    if (OperationClass.compactions(operation) && !policy.classes.contains(operation))
      policy.compaction
    else operation

  private def layoutOf(conflict: Conflict, columns: Seq[String]): String = conflict.kind match {
    case ConflictKind.ConcurrentWrite =>
      "RESTORE, CLONE and CONVERT fail if any other job commits while they run: run them alone. For " +
        "other jobs, set delta.logRetentionDuration to more than the longest job takes."
    case ConflictKind.ConcurrentTransaction => "Give each streaming query a checkpoint of its own."
    case ConflictKind.MetadataChanged =>
      "Change a table's schema, properties or policy while no other job writes to it."
    case ConflictKind.ProtocolChanged =>
      "Create or upgrade a table before other jobs write to it."
    case _ =>
      val partitions = Option.unless(conflict.overlap.areRowsKnown)(ofPartitions(conflict, columns))
      (ofPredicate(conflict.overlap) ++ partitions).mkString(" ")
  }

  private def ofPredicate(overlap: Overlap): Seq[String] = overlap.predicate.toSeq.map {
    case selected if !overlap.undecided =>
      s"${Overlap.short(selected)} matched rows that the winner changed; a predicate that matches none of them will " +
        "not conflict."
    case open =>
      s"${Overlap.short(open)} could not be decided for the winner's rows, so it counts as matching them: compare " +
        "columns with constants, without subqueries, user-defined functions, random values or the " +
        "current time."
  }

  private def ofPartitions(conflict: Conflict, columns: Seq[String]): String = {
    val apart = "jobs on different partitions never conflict."
    val named = columns.mkString(", ")
    if (columns.isEmpty)
      "Partition the table by a column whose values differ between the jobs, and compare it " +
        s"with constants in their predicates: $apart"
    else if (isCompaction(conflict))
      s"Compact only partitions that no other job writes to, by PARTITION ($named): $apart"
    else if (conflict.operationClass == OperationClass.Mutate)
      s"Compare $named with constants in the predicate (in ON, for MERGE): $apart"
    else s"Write other values of $named than the winner did: $apart"
  }

  private def retryOf(conflict: Conflict): (Boolean, String) = conflict.kind match {
    case ConflictKind.ConcurrentTransaction =>
      false -> "No: another query with the same checkpoint has already written this batch."
    case ConflictKind.ProtocolChanged =>
      false -> "No: first look at how the table was changed."
    case _ if isCompaction(conflict) =>
      true -> "Yes: its inputs are gone; a new run compacts the files that the table has by then."
    case _ => true -> "Yes: a new run reads what the winner has written."
  }

  private def isCompaction(conflict: Conflict) =
    OperationClass.compactions(conflict.operationClass)
}
