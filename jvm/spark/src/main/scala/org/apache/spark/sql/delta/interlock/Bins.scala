package org.apache.spark.sql.delta.interlock

import io.interlock.spark.{CompactionKind, CompactionSettings}
import org.apache.spark.sql.delta.actions.AddFile

/** Which files a compaction makes one of. */
private[interlock] object Bins {

  /** Files of one partition each, oldest rows first. COMPACT MAJOR takes every file.
    *
    * @param partitionOf
    *   equal for files of one partition
    */
  def of(
      files: Seq[AddFile],
      kind: CompactionKind,
      settings: CompactionSettings,
      partitionOf: AddFile => Any
  ): Seq[Seq[AddFile]] = {
    val taken =
      if (kind.packsSmallFilesOnly) files.filter(_.size < settings.smallFileSize) else files
    val least = if (kind.packsSmallFilesOnly) settings.minFiles else 1L
    val partitions = inOrder(taken).groupBy(partitionOf).values.toSeq.sortBy(age)(oldestFirst)
    partitions.flatMap(packed(_, settings.targetFileSize)).filter(_.size >= least)
  }

  /** The order that files are packed in: by their first row id, which grows with every insert. */
  def inOrder(files: Seq[AddFile]): Seq[AddFile] = files.sortBy(file => age(Seq(file)))(oldestFirst)

  private type Age = (Long, Long, String)
  private val oldestFirst = Ordering[Age]

  private def age(files: Seq[AddFile]): Age = {
    val first = files.head
    (first.baseRowId.getOrElse(Long.MaxValue), first.modificationTime, first.path)
  }

  /** One after another into a bin until the next would not fit. */
  private def packed(files: Seq[AddFile], most: Long): Seq[Seq[AddFile]] =
    files.foldLeft(Vector.empty[Vector[AddFile]]) {
      case (full :+ last, file) if last.map(_.size).sum + file.size <= most =>
        full :+ (last :+ file)
      case (bins, file) => bins :+ Vector(file)
    }
}
