package io.interlock.rules

/** The partitions of the files that a commit adds and removes, None where the log does not tell one. */
final class TouchedPartitions(
    ofAdded: Set[Option[Partition]],
    ofRemoved: Set[Option[Partition]]
) {
  val added: Set[Partition] = ofAdded.flatten
  val written: Set[Partition] = added ++ ofRemoved.flatten
  val areTold: Boolean = !ofAdded.contains(None) && !ofRemoved.contains(None)
}

/** What an overwrite replaces. */
sealed trait Replaces extends Product with Serializable
object Replaces {
  case object Everything extends Replaces
  final case class Selected(by: Partition => Boolean) extends Replaces

  /** The partitions that it writes.
    *
    * @param withNull
    *   whether those are among them in which a value is NULL
    */
  final case class Written(withNull: Boolean) extends Replaces
}

/** What a commit reads, writes and replaces.
  *
  * @param partitioned
  *   whether the table is
  * @param replaces
  *   asked of overwrites only
  * @param reads
  *   its partition predicates; asked only where they count, since it takes time to resolve them
  */
final class Footprint(
    partitioned: Boolean,
    touched: TouchedPartitions,
    replaces: => Replaces,
    readsWholeTable: Boolean,
    reads: => Seq[Partition => Boolean]
) {

  /** The attempt as a policy judges it, and behind it what an overwrite writes outside of what it
    * replaces, as an APPEND.
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

  /** What an overwrite replaces, whoever wrote it. */
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
