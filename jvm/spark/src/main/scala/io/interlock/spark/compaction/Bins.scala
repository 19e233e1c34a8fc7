package io.interlock.spark.compaction

import org.apache.spark.sql.delta.actions.AddFile

/** Chooses the files that a compaction packs into one. */
object Bins {

  /** Bins with files of one partition each, oldest rows first.
    *
    * @param most
    *   bytes in a bin; a larger file has its own
    */
  def of(
      files: Seq[AddFile],
      most: Long,
      partitionOf: AddFile => Any
  ): Seq[Seq[AddFile]] = {
    val partitions =
      inOrder(files).groupBy(partitionOf).values.toSeq.sortBy(files => age(files.head))
    partitions.flatMap(packed(_, most))
  }

  /** The files in the order of packing: by first row id, which grows with every insert. */
  def inOrder(files: Seq[AddFile]): Seq[AddFile] = files.sortBy(age)

  private def age(file: AddFile): (Long, Long, String) =
    (file.baseRowId.getOrElse(Long.MaxValue), file.modificationTime, file.path)

  /** Puts files into a bin until the next would not fit. */
  private def packed(files: Seq[AddFile], most: Long): Seq[Seq[AddFile]] = {
    val (bins, _) = files.foldLeft((Vector.empty[Vector[AddFile]], 0L)) {
      case ((full :+ last, size), file) if size + file.size <= most =>
        (full :+ (last :+ file), size + file.size)
      case ((bins, _), file) => (bins :+ Vector(file), file.size)
    }
    bins
  }
}
