package io.interlock.rules

/** The class of a statement, by which a policy decides conflicts (docs/entry-points.md). */
sealed abstract class OperationClass(val name: String) extends Product with Serializable {
  override def toString: String = name
}

object OperationClass {

  /** INSERT OVERWRITE, TRUNCATE, RTAS; as a winner also RESTORE and CLONE. */
  case object Overwrite extends OperationClass("OVERWRITE")

  /** INSERT INTO and streaming append. */
  case object Append extends OperationClass("APPEND")

  /** UPDATE, DELETE, MERGE, and overwrites selected by data columns. */
  case object Mutate extends OperationClass("MUTATE")

  case object CompactMinor extends OperationClass("COMPACT_MINOR")
  case object CompactMajor extends OperationClass("COMPACT_MAJOR")

  /** Every compaction under the policies of the MaxCompute ACID page. */
  case object MergeSmallFiles extends OperationClass("MERGE_SMALLFILES")

  /** Operations that change no data; Delta's own checks judge them. */
  case object Metadata extends OperationClass("METADATA")

  val all: Seq[OperationClass] =
    Seq(Overwrite, Append, Mutate, CompactMinor, CompactMajor, MergeSmallFiles, Metadata)

  val compactions: Set[OperationClass] = Set(CompactMinor, CompactMajor, MergeSmallFiles)

  def byName(name: String): Option[OperationClass] = all.find(_.name == name)
}
