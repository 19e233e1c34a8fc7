package org.apache.spark.sql.delta.interlock.judging

import scala.collection.mutable
import scala.util.control.NonFatal

import com.google.common.base.Throwables
import io.interlock.rules.rebase.{Dying, IdentifiedRows, RowIds, RowSet}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}
import org.apache.spark.sql.delta.{RowId, Snapshot}
import org.apache.spark.sql.functions.col

/** Reads row ids from files: their column of row ids, if a file has one, and no other column. Dead
  * rows are read too.
  *
  * The ids are read in this thread, or by a Spark job if the files are large.
  */
final private[interlock] class ReadRowIds(
    spark: SparkSession,
    snapshot: Snapshot,
    inputs: Seq[RemoveFile],
    outputs: Seq[AddFile]
) extends RowIds {
  import ReadRowIds._

  private lazy val session = StrictSession.of(spark)

  override def of(dying: Seq[Dying]): Either[String, Seq[IdentifiedRows]] = {
    val byPath = dying.map(file => file.path -> file).toMap
    val files = inputs.filter(file => byPath.contains(file.path) && file.size.exists(_ > 0))
      .map(ChangedRows.asAdded)
    val byBase = files.flatMap(file => file.baseRowId.map(_ -> byPath(file.path))).toMap
    if (byBase.size < dying.size) RowIds.Unknown.of(dying)
    else read(files)((base, row, _) => byBase(base).contains(row))
  }

  override def having(
      ids: RowSet,
      sources: Seq[String]
  ): Either[String, Seq[IdentifiedRows]] = {
    val paths = sources.toSet
    val partitions = inputs.filter(file => paths(file.path)).map(_.partitionValues).toSet
    val near = outputs.filter(file => partitions(file.partitionValues))
    // The log may spell a partition's value in several ways.
    val areFound = partitions.subsetOf(near.map(_.partitionValues).toSet)
    read(if (ids.isEmpty) Nil else if (areFound) near else outputs)((_, _, id) => ids.contains(id))
  }

  private def read(files: Seq[AddFile])(wanted: Wanted): Either[String, Seq[IdentifiedRows]] = {
    val paths = files.flatMap(file => file.baseRowId.map(_ -> file.path)).toMap
    val isTracked = RowId.isEnabled(snapshot.protocol, snapshot.metadata)
    if (files.isEmpty) Right(Nil)
    else if (!isTracked || paths.size < files.size)
      RowIds.Unknown.of(Nil)
    else
      try
        Right(found(files, wanted).map { case (base, rows, ids) =>
          IdentifiedRows(paths(base), rows, ids)
        })
      catch {
        case NonFatal(error) if !JudgingJob.isCancelled(error) =>
          val cause = Throwables.getRootCause(error).toString.linesIterator.nextOption()
          Left(s"the row ids of its files cannot be read (${cause.getOrElse("")})")
      }
  }

  /** The rows wanted by the base row id of their file: their indexes and ids. */
  private def found(files: Seq[AddFile], wanted: Wanted): Seq[(Long, RowSet, RowSet)] =
    session.withActive {
      val withoutVectors = files.map(_.copy(deletionVector = null))
      val rows = snapshot.deltaLog.createDataFrame(snapshot, withoutVectors)
        .select(Columns.map(name => col(s"_metadata.$name")): _*)
      val found = castToImpl(rows).queryExecution.toRdd.mapPartitions(select(_, wanted))
      if (files.map(_.size).sum > RowsOfFiles.MostReadHere)
        JudgingJob.run(session)(found.collect()).toSeq
      else
        JudgingJob.inThread(session)(task =>
          found.partitions.iterator.flatMap(found.iterator(_, task)).toVector
        )
    }
}

private object ReadRowIds {

  /** A file's base row id also tells which file a row is of. */
  private val Columns = Seq("base_row_id", "row_index", "row_id")

  /** Whether a row is wanted, by the values of these columns. */
  private trait Wanted extends Serializable {
    def apply(base: Long, row: Long, id: Long): Boolean
  }

  private def select(
      rows: Iterator[InternalRow],
      wanted: Wanted
  ): Iterator[(Long, RowSet, RowSet)] = {
    val files = mutable.LongMap.empty[(RowSet.Builder, RowSet.Builder)]
    rows.foreach { row =>
      val (base, index, id) = (row.getLong(0), row.getLong(1), row.getLong(2))
      if (wanted(base, index, id)) {
        val (indexes, ids) =
          files.getOrElseUpdate(base, (new RowSet.Builder, new RowSet.Builder))
        indexes.addRange(index, index + 1)
        ids.addRange(id, id + 1)
      }
    }
    files.iterator.map { case (base, (rows, ids)) => (base, rows.result(), ids.result()) }
  }
}
