package io.interlock.rules

/** The policy's decision on an attempt that comes after a winner (docs/policies.md). */
sealed abstract class Verdict(val name: String) extends Product with Serializable {
  override def toString: String = name
}

object Verdict {

  /** The attempt fails with an error; it makes no version, and none of its rows is visible. */
  case object Fail extends Verdict("FAIL")

  /** The attempt commits its actions unchanged, at the next version. */
  case object AsIs extends Verdict("AS_IS")

  /** The attempt removes every file that is live in its scope at commit time. */
  case object ReplaceLive extends Verdict("REPLACE_LIVE")

  /** Rows that the attempt marked dead in compacted files are marked dead in the compaction's
    * output.
    */
  case object RemapRows extends Verdict("REMAP_ROWS")

  /** Rows that the winner marked dead in the compaction's inputs are marked dead in its output. */
  case object RebaseCompaction extends Verdict("REBASE_COMPACTION")

  /** A compaction of the whole scope removes the files that the winner's compaction wrote. */
  case object Supersede extends Verdict("SUPERSEDE")

  /** Fails if the two overlap in files: the winner removed files that the attempt read or removes,
    * or added rows that the attempt's predicates select. The policy's isolation level says which
    * added rows count.
    */
  case object ByFiles extends Verdict("BY_FILES")

  /** Fails if the two overlap in rows: the attempt's predicates select rows that the winner added
    * or marked dead, or both marked the same row dead. Otherwise the vectors of files that both
    * changed are united.
    */
  case object ByRows extends Verdict("BY_ROWS")

  /** Verdicts that fail only if the two jobs overlap in files or rows. */
  val ifTheyOverlap: Set[Verdict] = Set(ByFiles, ByRows)

  val all: Seq[Verdict] =
    Seq(Fail, AsIs, ReplaceLive, RemapRows, RebaseCompaction, Supersede, ByFiles, ByRows)

  /** Verdicts whose rebase maps rows through deletion vectors. */
  val needDeletionVectors: Set[Verdict] = Set(RemapRows, RebaseCompaction)

  /** Verdicts by which a job passes another one that has moved its rows. */
  val needRowsFollowed: Set[Verdict] = needDeletionVectors + Supersede

  def byName(name: String): Option[Verdict] = all.find(_.name == name)
}
