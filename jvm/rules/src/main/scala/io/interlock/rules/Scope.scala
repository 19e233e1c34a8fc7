package io.interlock.rules

/** The partitions that a winner changed: those of the files it added or removed.
  *
  * A partition is the map from partition column to its value as the table's log writes it (null
  * for the null partition).
  */
sealed trait ChangedScope extends Product with Serializable

object ChangedScope {
  type Partition = Map[String, String]

  /** The winner changed no file. */
  case object Nothing extends ChangedScope

  /** The table is not partitioned, or the winner's files do not tell. */
  case object WholeTable extends ChangedScope

  final case class Partitions(values: Set[Partition]) extends ChangedScope

  /** @param partitions
    *   one entry per added or removed file, None where the file does not tell its partition
    */
  def of(partitioned: Boolean, partitions: Iterable[Option[Partition]]): ChangedScope =
    if (partitions.isEmpty) Nothing
    else if (!partitioned || partitions.exists(_.isEmpty)) WholeTable
    else Partitions(partitions.flatten.toSet)
}

/** The partitions that an attempt writes or replaces, and those its predicates can select. */
trait AttemptScope {

  /** Whether the attempt covers every partition, also those that do not exist yet. */
  def coversTable: Boolean

  def covers(partition: ChangedScope.Partition): Boolean

  /** Whether the attempt covers no partition at all. */
  def isEmpty: Boolean

  /** Whether anything that the winner changed lies in this scope. */
  final def meets(changed: ChangedScope): Boolean = changed match {
    case ChangedScope.Nothing => false
    case ChangedScope.WholeTable => coversTable || !isEmpty
    case ChangedScope.Partitions(values) => coversTable || values.exists(covers)
  }
}

object AttemptScope {
  object WholeTable extends AttemptScope {
    override def coversTable: Boolean = true
    override def covers(partition: ChangedScope.Partition): Boolean = true
    override def isEmpty: Boolean = false
  }

  /** @param written
    *   partitions of the files which the attempt adds or removes
    * @param selects
    *   the attempt's partition predicates; none where it selects nothing
    */
  final case class Partitions(
      written: Set[ChangedScope.Partition],
      selects: Seq[ChangedScope.Partition => Boolean]
  ) extends AttemptScope {
    override def coversTable: Boolean = false
    override def covers(partition: ChangedScope.Partition): Boolean =
      written.contains(partition) || selects.exists(_(partition))
    override def isEmpty: Boolean = written.isEmpty && selects.isEmpty
  }
}
