package org.apache.spark.sql.delta.interlock.compaction

import scala.jdk.CollectionConverters._

import io.interlock.rules.rebase.Segment
import io.interlock.spark.compaction.{CountRows, FilesInOrder, Lineage, OneFileEach}
import io.interlock.spark.errors.InterlockException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.interlock.judging.StrictSession
import org.apache.spark.sql.delta.interlock.rebase.RowVectors
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.delta.{OptimisticTransaction, RowTracking}
import org.apache.spark.sql.{Dataset, SparkSession, classic}
import org.apache.spark.util.CollectionAccumulator

/** The result of rewriting a bin.
  *
  * @param output
  *   the file that was written, with a tag that says where its rows come from; none if all rows
  *   were dead
  */
final private[interlock] case class Rewritten(
    inputs: Seq[AddFile],
    output: Option[AddFile]
)

/** Rewrites each bin of files into one file with the live rows of its inputs, in the order of the
  * files in the bin and of the rows in each file.
  *
  * All bins are rewritten by one Spark job, with one task per bin. Nothing is sorted or shuffled.
  * The rows read from each file and written to each are counted and compared with the log.
  */
final private[interlock] class OrderedRewrite(transaction: OptimisticTransaction, table: String) {
  private val session = OrderedRewrite.session(SparkSession.active)

  /** @param write
    *   writes rows as files of the table, a file for each partition of the data
    * @throws InterlockException
    *   INTERLOCK_COMPACTION_MISMATCH, if the numbers of rows do not match
    */
  def run(bins: Seq[Seq[AddFile]])(write: Dataset[_] => Seq[FileAction]): Seq[Rewritten] =
    session.withActive {
      val counted = session.sparkContext.collectionAccumulator[(String, Long)]
      val written = write(scan(bins, counted)).collect { case add: AddFile => add }
      val rows = counted.value.asScala.toMap
      val outputs = written.groupBy(taskOf)
      bins.zipWithIndex.map { case (bin, task) => rewritten(bin, outputs.get(task), rows) }
    }

  /** The live rows of the bins, bin by bin, with the columns that keep row ids. */
  private def scan(bins: Seq[Seq[AddFile]], counted: CollectionAccumulator[(String, Long)]) = {
    val snapshot = transaction.snapshot
    val files =
      transaction.deltaLog.createDataFrame(snapshot, bins.flatten, actionTypeOpt = Some("Optimize"))
    val data = castToImpl(RowTracking.preserveRowTrackingColumns(files, snapshot))
    val read: RDD[InternalRow] = data.queryExecution.toRdd
    val places = bins.map(_.map(place))
    val binned = read
      .mapPartitionsWithIndex(new CountRows(OneFileEach.places(read.partitions), counted))
      .coalesce(bins.size, shuffle = false, Some(new FilesInOrder(places)))
    session.internalCreateDataFrame(binned, data.schema)
  }

  private def rewritten(
      bin: Seq[AddFile],
      outputs: Option[Seq[AddFile]],
      rows: Map[String, Long]
  ): Rewritten = {
    val live = bin.map(file => rows.getOrElse(place(file), mismatch(s"${file.path} was not read")))
    bin.zip(live).foreach { case (file, count) =>
      file.numLogicalRecords.filter(_ != count).foreach { recorded =>
        mismatch(s"$count rows were read from ${file.path}, which has $recorded by the log")
      }
    }
    val total = live.sum
    outputs.toSeq.flatten match {
      case Seq() if total == 0 => Rewritten(bin, None)
      case Seq(file) if file.numPhysicalRecords.contains(total) =>
        val segments = bin.zip(live).zip(live.scanLeft(0L)(_ + _)).map {
          case ((input, count), target) =>
            Segment(input.path, RowVectors.token(input.deletionVector), 0, count, target)
        }
        Rewritten(bin, Some(Lineage.written(file, segments)))
      case files =>
        val found = files.map(_.numPhysicalRecords.fold("?")(_.toString)).mkString(" and ")
        mismatch(
          s"$total rows were read and $found written for a file that begins with ${bin.head.path}"
        )
    }
  }

  private def place(file: AddFile): String =
    OneFileEach.place(DeltaFileOperations.absolutePath(
      transaction.deltaLog.dataPath.toString,
      file.path
    ))

  private def taskOf(file: AddFile): Int =
    OrderedRewrite.TaskNumber.findFirstMatchIn(file.path.split('/').last)
      .getOrElse(mismatch(s"${file.path} does not name the task that wrote it")).group(1).toInt

  private def mismatch(found: String): Nothing =
    throw InterlockException("INTERLOCK_COMPACTION_MISMATCH", "table" -> table, "found" -> found)
}

private[interlock] object OrderedRewrite {
  private val TaskNumber = """part-(\d{5,})-""".r

  /** More bytes than any file has, so that no file is split. */
  private val Unsplit = (1L << 50).toString

  private def settings = Map(
    // One file is one partition of the scan.
    "spark.sql.files.maxPartitionBytes" -> Unsplit,
    "spark.sql.files.openCostInBytes" -> Unsplit,
    "spark.sql.files.minPartitionNum" -> "1",
    // One partition of the data is one file, and no partitioned write sorts its rows first.
    "spark.sql.files.maxRecordsPerFile" -> "0",
    "spark.sql.maxConcurrentOutputFileWriters" -> "2",
    "spark.sql.adaptive.enabled" -> "false",
    // Row ids and the counts that are compared need the statistics.
    DeltaSQLConf.DELTA_COLLECT_STATS.key -> "true"
  )

  /** A session with the user's settings, except for those that could change the order of rows. */
  private def session(users: SparkSession): classic.SparkSession = {
    val own = StrictSession.of(users)
    settings.foreach { case (key, value) => own.conf.set(key, value) }
    own.conf.unset("spark.sql.files.maxPartitionNum")
    own
  }
}
