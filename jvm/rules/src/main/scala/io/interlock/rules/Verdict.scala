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

  /** Fails if the two met in files: Delta's own file checks at the policy's isolation level. */
  case object ByFiles extends Verdict("BY_FILES")

  val all: Seq[Verdict] =
    Seq(Fail, AsIs, ReplaceLive, RemapRows, RebaseCompaction, Supersede, ByFiles)

  /** Verdicts whose rebase maps rows through deletion vectors. */
  val needDeletionVectors: Set[Verdict] = Set(RemapRows, RebaseCompaction)

  def byName(name: String): Option[Verdict] = all.find(_.name == name)
}
