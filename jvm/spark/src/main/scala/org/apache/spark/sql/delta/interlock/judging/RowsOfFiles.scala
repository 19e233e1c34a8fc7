package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.Overlap
import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.{DataFrameUtils, Snapshot}
import org.apache.spark.sql.functions.{col, struct, to_json}
import org.apache.spark.sql.{SparkSession, classic}

/** A row of a file.
  *
  * @param file
  *   the file's name, without its folder
  * @param json
  *   some columns, as a JSON object
  */
final private[interlock] case class FoundRow(file: String, json: String)

/** The live rows of some files of a table, with the columns and properties of a snapshot. */
final private[interlock] class RowsOfFiles(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Seq[AddFile]
) {
  private val session = RowsOfFiles.session(spark)

  /** A few rows that match all conditions, with the columns that the conditions name.
    *
    * The rows are read in this thread, so that a commit need not wait for a free executor, or by a
    * Spark job if the files are large.
    *
    * @param conditions
    *   conditions on columns, which are found by name, whatever relation they were resolved in
    */
  def where(conditions: Seq[Expression]): Seq[FoundRow] = session.withActive {
    val table = snapshot.deltaLog.createDataFrame(snapshot, files)
    val plan = castToImpl(table).queryExecution.analyzed
    val resolver = session.sessionState.conf.resolver
    val named = conditions.map(_.transform { case attribute: Attribute =>
      plan.output.find(column => resolver(column.name, attribute.name))
        .getOrElse(throw new IllegalArgumentException(s"${attribute.name} is no column."))
    })
    val columns = named.flatMap(_.references).map(_.name).distinct
    val found = DataFrameUtils.ofRows(session, Filter(named.reduce(And), plan))
      .select(col("_metadata.file_name"), to_json(struct(columns.map(quoted): _*)))
    if (files.map(_.size).sum > RowsOfFiles.MostReadHere)
      found.limit(Overlap.RowsShown).collect().toSeq.map(row =>
        FoundRow(row.getString(0), row.getString(1))
      )
    else
      RowsOfFiles.firstOf(castToImpl(found).queryExecution.toRdd, Overlap.RowsShown)(row =>
        FoundRow(row.getUTF8String(0).toString, row.getUTF8String(1).toString)
      )
  }

  private def quoted(name: String) = col(s"`${name.replace("`", "``")}`")
}

private[interlock] object RowsOfFiles {

  /** The maximum size in bytes of files that are read in this thread. */
  private val MostReadHere = 64L * 1024 * 1024

  /** A session like the user's in which a file that cannot be read does not count as empty. */
  def session(users: SparkSession): classic.SparkSession = {
    val own = castToImpl(users).cloneSession()
    own.conf.set("spark.sql.files.ignoreMissingFiles", "false")
    own.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    own
  }

  /** The first rows of a scan, computed in this thread, without a task context of Spark. */
  private def firstOf[A](rows: RDD[InternalRow], count: Int)(read: InternalRow => A): Seq[A] = {
    val task = TaskContext.empty()
    try rows.partitions.iterator.flatMap(rows.iterator(_, task)).map(read).take(count).toVector
    finally task.markTaskCompleted(None)
  }
}
