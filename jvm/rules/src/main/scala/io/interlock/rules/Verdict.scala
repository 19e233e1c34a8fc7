package io.interlock.rules

/** What becomes of an attempt that finds a winner before it (design, section 2). */
sealed abstract class Verdict(val name: String) extends Product with Serializable {
  override def toString: String = name
}

object Verdict {

  /** The attempt raises; it makes no version and leaves no visible row. */
  case object Fail extends Verdict("FAIL")

  /** The attempt's actions are right as they are, at the next version. */
  case object AsIs extends Verdict("AS_IS")

  /** The attempt removes every file that is live in its scope at commit time. */
  case object ReplaceLive extends Verdict("REPLACE_LIVE")

  /** Dead rows of compacted files are mapped to the rows of the compaction's output. */
  case object RemapRows extends Verdict("REMAP_ROWS")

  /** The compaction's output takes over what the winner did to its inputs. */
  case object RebaseCompaction extends Verdict("REBASE_COMPACTION")

  /** A compaction of the whole scope removes what the winner's compaction made. */
  case object Supersede extends Verdict("SUPERSEDE")

  /** Fails if the two met in files: the winner removed files that the attempt read or removes, or
    * added rows that the attempt's predicates select, as the policy's isolation level has it.
    */
  case object ByFiles extends Verdict("BY_FILES")

  /** Fails if the two met in rows: the attempt's predicates select rows that the winner added or
    * marked dead, or both marked the same row. Else the vectors of files that both changed are united.
    */
  case object ByRows extends Verdict("BY_ROWS")

  /** Verdicts that are known only from what both jobs did. */
  val ifTheyMeet: Set[Verdict] = Set(ByFiles, ByRows)

  val all: Seq[Verdict] =
    Seq(Fail, AsIs, ReplaceLive, RemapRows, RebaseCompaction, Supersede, ByFiles, ByRows)

  /** Verdicts whose rebase maps rows through deletion vectors. */
  val needDeletionVectors: Set[Verdict] = Set(RemapRows, RebaseCompaction)

  def byName(name: String): Option[Verdict] = all.find(_.name == name)
}
