package io.interlock.rules

/** The partitions of the files that a commit adds and removes; None for a file whose partition the
  * log does not tell.
  */
final class TouchedPartitions(
    ofAdded: Set[Option[Partition]],
    ofRemoved: Set[Option[Partition]]
) {
  val added: Set[Partition] = ofAdded.flatten
  val written: Set[Partition] = added ++ ofRemoved.flatten
  val areTold: Boolean = !ofAdded.contains(None) && !ofRemoved.contains(None)
}

/** The part of a table that an overwrite replaces. */
sealed trait Replaces extends Product with Serializable
object Replaces {
  case object Everything extends Replaces
  final case class Selected(by: Partition => Boolean) extends Replaces

  /** The partitions that the overwrite writes.
    *
    * @param withNull
    *   whether partitions with a NULL value are replaced as well
    */
  final case class Written(withNull: Boolean) extends Replaces
}

/** The partitions that a commit reads, writes and replaces.
  *
  * @param partitioned
  *   whether the table is partitioned
  * @param replaces
  *   evaluated for overwrites only
  * @param reads
  *   its partition predicates; evaluated only if they count, since resolving them takes time
  */
final class Footprint(
    partitioned: Boolean,
    touched: TouchedPartitions,
    replaces: => Replaces,
    readsWholeTable: Boolean,
    reads: => Seq[Partition => Boolean]
) {

  /** The attempt as a policy judges it. If an overwrite also writes outside of the partitions it
    * replaces, these writes follow as a second attempt, an APPEND.
    */
  def attempts(policy: Policy, operation: OperationClass): Seq[Attempt] = {
    val appended =
      if (operation == OperationClass.Overwrite) touched.added.filterNot(replaced.covers)
      else Set.empty[Partition]
    Attempt(operation, scope(policy, operation)) +:
      Option.when(appended.nonEmpty)(
        Attempt(OperationClass.Append, AttemptScope.Partitions(appended, Nil))
      ).toSeq
  }

  private def scope(policy: Policy, operation: OperationClass): AttemptScope = operation match {
    case _ if !partitioned || !touched.areTold => AttemptScope.WholeTable
    case _ if policy.judgesReads && readsWholeTable => AttemptScope.WholeTable
    case _ if policy.judgesReads => AttemptScope.Partitions(touched.written, selected ++ reads)
    case OperationClass.Append => AttemptScope.Partitions(touched.written, Nil)
    case OperationClass.Overwrite => replaced
    case _ if readsWholeTable => AttemptScope.WholeTable
    case _ => AttemptScope.Partitions(touched.written, reads)
  }

  private def selected: Seq[Partition => Boolean] = replaces match {
    case Replaces.Selected(by) => Seq(by)
    case _ => Nil
  }

  /** The scope that an overwrite replaces, Interlock's or a foreign writer's. */
  def replaced: AttemptScope =
    if (!partitioned) AttemptScope.WholeTable
    else
      replaces match {
        case Replaces.Everything => AttemptScope.WholeTable
        case Replaces.Selected(by) => AttemptScope.Partitions(Set.empty, Seq(by))
        case Replaces.Written(withNull) =>
          val written = touched.written.filter(withNull || !_.values.values.exists(_ == null))
          AttemptScope.Partitions(written, Nil)
      }
}
