package io.interlock.rules

/** A partition of a table.
  *
  * @param values
  *   the values of all partition columns, null for NULL; each value in one normal form, however the
  *   log spells it
  */
final case class Partition(values: Map[String, String]) {

  /** As a path: `country=DE/day=2026-01-01`. */
  override def toString: String =
    values.toSeq.sorted.map { case (column, value) => s"$column=$value" }.mkString("/")
}

/** The partitions that a winner changed: those of the files it added or removed. */
sealed trait ChangedScope extends Product with Serializable

object ChangedScope {

  /** A few of several partitions, as text. */
  def few(several: Set[Partition]): String = several.map(_.toString).toSeq.sorted.take(3)
    .mkString("", ", ", if (several.size > 3) s" and ${several.size - 3} more" else "")

  /** The winner changed no file. */
  case object Nothing extends ChangedScope

  /** The table is not partitioned, or the partition of a file of the winner is not known. */
  case object WholeTable extends ChangedScope

  final case class Partitions(values: Set[Partition]) extends ChangedScope

  /** @param partitions
    *   one entry per added or removed file; None if its partition is not known
    */
  def of(partitioned: Boolean, partitions: Iterable[Option[Partition]]): ChangedScope =
    if (partitions.isEmpty) Nothing
    else if (!partitioned || partitions.exists(_.isEmpty)) WholeTable
    else Partitions(partitions.flatten.toSet)
}

/** The partitions that an attempt writes or replaces, and those its predicates can select. */
trait AttemptScope {

  /** Whether the attempt covers every partition, including those that do not exist yet. */
  def coversTable: Boolean

  def covers(partition: Partition): Boolean

  /** Whether the attempt covers no partition at all. */
  def isEmpty: Boolean

  /** Whether the winner changed anything in this scope. */
  final def overlaps(changed: ChangedScope): Boolean = changed match {
    case ChangedScope.Nothing => false
    case ChangedScope.WholeTable => coversTable || !isEmpty
    case ChangedScope.Partitions(values) => coversTable || values.exists(covers)
  }
}

object AttemptScope {
  object WholeTable extends AttemptScope {
    override def coversTable: Boolean = true
    override def covers(partition: Partition): Boolean = true
    override def isEmpty: Boolean = false
  }

  /** @param written
    *   partitions of the files that the attempt adds or removes
    * @param selects
    *   the attempt's partition predicates; none if it selects nothing
    */
  final case class Partitions(
      written: Set[Partition],
      selects: Seq[Partition => Boolean]
  ) extends AttemptScope {
    override def coversTable: Boolean = false
    override def covers(partition: Partition): Boolean =
      written.contains(partition) || selects.exists(_(partition))
    override def isEmpty: Boolean = written.isEmpty && selects.isEmpty
  }
}
