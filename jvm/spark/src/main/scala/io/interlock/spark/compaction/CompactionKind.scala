package io.interlock.spark.compaction

/** A compaction that has an SQL statement.
  *
  * @param name
  *   its name in the table's history
  * @param packsSmallFilesOnly
  *   whether it packs only small files and leaves others alone
  */
sealed abstract class CompactionKind(val name: String, val packsSmallFilesOnly: Boolean)
    extends Product
    with Serializable {

  /** The statement's last words. */
  def words: Seq[String] = name.split(' ').toSeq
}

object CompactionKind {
  case object Minor extends CompactionKind("COMPACT MINOR", packsSmallFilesOnly = true)
  case object Major extends CompactionKind("COMPACT MAJOR", packsSmallFilesOnly = false)
  case object MergeSmallFiles extends CompactionKind("MERGE SMALLFILES", packsSmallFilesOnly = true)

  val all: Seq[CompactionKind] = Seq(Minor, Major, MergeSmallFiles)
}
