package io.interlock.spark.compaction

import org.apache.hadoop.fs.Path
import org.apache.spark.Partition
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.util.CollectionAccumulator

/** The partitions of a scan in which each partition reads one whole file. */
object OneFileEach {

  /** The name of a file, which is the same for a scan and for the log. */
  def place(path: Path): String = path.toUri.toString

  /** The file of each partition. */
  def places(partitions: Array[Partition]): Array[String] = partitions.map {
    case FilePartition(_, Array(file)) if file.start == 0 && file.length == file.fileSize =>
      place(file.toPath)
    case other => throw new IllegalStateException(s"$other does not read one whole file.")
  }
}

/** Makes each bin one partition that reads the bin's files in their order. */
final class FilesInOrder(bins: Seq[Seq[String]])
    extends PartitionCoalescer
    with Serializable {

  override def coalesce(most: Int, scan: RDD[_]): Array[PartitionGroup] = {
    val byPlace = OneFileEach.places(scan.partitions).zip(scan.partitions).toMap
    bins.map { bin =>
      val group = new PartitionGroup()
      group.partitions ++= bin.map(byPlace)
      group
    }.toArray
  }
}

/** Counts the rows of each file after all of them were read. A repeated task adds the same count
  * again.
  */
final class CountRows(
    places: Array[String],
    counted: CollectionAccumulator[(String, Long)]
) extends ((Int, Iterator[InternalRow]) => Iterator[InternalRow])
    with Serializable {

  override def apply(number: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new Iterator[InternalRow] {
      private var count = 0L
      private var isDone = false

      override def hasNext: Boolean = rows.hasNext || {
        if (!isDone) counted.add(places(number) -> count)
        isDone = true
        false
      }

      override def next(): InternalRow = {
        count += 1
        rows.next()
      }
    }
}
