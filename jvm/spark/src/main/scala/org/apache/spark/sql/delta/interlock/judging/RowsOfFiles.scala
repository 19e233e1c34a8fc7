package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.Overlap
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.{DataFrameUtils, Snapshot}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, SparkSession}

/** A row of a file.
  *
  * @param file
  *   the file's name, without its folder
  * @param json
  *   some columns, as a JSON object
  * @param source
  *   a row of a source that matches, likewise, if rows were compared with a source
  */
final private[interlock] case class FoundRow(file: String, json: String, source: Option[String])

/** The live rows of some files of a table, with the columns and properties of a snapshot. */
final private[interlock] class RowsOfFiles(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Seq[AddFile]
) {
  private val session = StrictSession.of(spark)

  /** A few rows that match all conditions, and a row of a source if there is one, with the columns
    * that the conditions name.
    *
    * The rows are read in this thread, so that a commit need not wait for a free executor, or by a
    * Spark job if the files are large.
    *
    * @param conditions
    *   conditions on columns, which are found by name, whatever relation they were resolved in
    */
  def where(
      conditions: Seq[Expression],
      reads: Option[MatchedReads] = None
  ): Seq[FoundRow] = session.withActive {
    val table = snapshot.deltaLog.createDataFrame(snapshot, files)
    val plan = analyzed(table)
    val resolver = session.sessionState.conf.resolver
    def named(expression: Expression) = expression.transform { case attribute: Attribute =>
      plan.output.find(column => resolver(column.name, attribute.name))
        .getOrElse(throw new IllegalArgumentException(s"${attribute.name} is no column."))
    }
    val selected = conditions.map(named).reduceOption(And).fold(plan)(Filter(_, plan))
    val rows = analyzed(query(selected).select(col("_metadata.file_name"), col("*")))
    val (found, sourceRow) = reads.fold((rows, noRow))(_.matching(rows, named))
    val columns = (conditions ++ reads.toSeq.flatMap(_.targetColumns)).map(named)
      .flatMap(_.references).distinctBy(_.exprId)
    val row = CreateStruct(columns)
    val shown = query(Project(
      rows.output.head +: Seq(row, sourceRow).map(of =>
        Alias(StructsToJson(withNulls, of), "row")()
      ),
      found
    ))
    if (reads.exists(!_.isInMemory) || files.map(_.size).sum > RowsOfFiles.MostReadHere)
      JudgingJob.run(session)(shown.limit(Overlap.RowsShown).collect()).toSeq.map(row =>
        FoundRow(row.getString(0), row.getString(1), Option(row.getString(2)))
      )
    else
      firstOf(castToImpl(shown).queryExecution.toRdd, Overlap.RowsShown)(row =>
        FoundRow(text(row, 0), text(row, 1), Option.when(!row.isNullAt(2))(text(row, 2)))
      )
  }

  /** The first rows of a scan, computed in this thread. */
  private def firstOf[A](rows: RDD[InternalRow], count: Int)(read: InternalRow => A): Seq[A] =
    JudgingJob.inThread(session)(task =>
      rows.partitions.iterator.flatMap(rows.iterator(_, task)).map(read).take(count).toVector
    )

  private def withNulls = Map("ignoreNullFields" -> "false")
  private def noRow: Expression = Literal(null, new StructType)
  private def query(plan: LogicalPlan) = DataFrameUtils.ofRows(session, plan)
  private def analyzed(rows: DataFrame) = castToImpl(rows).queryExecution.analyzed
  private def text(row: InternalRow, column: Int) = row.getUTF8String(column).toString
}

private[interlock] object RowsOfFiles {

  /** The maximum size in bytes of files that are read in this thread. */
  val MostReadHere = 64L * 1024 * 1024
}
