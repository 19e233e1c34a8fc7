package org.apache.spark.sql.delta.interlock

import io.interlock.rules.Meeting
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.{DataFrameUtils, Snapshot}
import org.apache.spark.sql.functions.{col, struct, to_json}
import org.apache.spark.sql.{Row, SparkSession, classic}

/** The live rows of some files of a table, with the columns and properties of a snapshot. */
final private[interlock] class RowsOfFiles(
    spark: SparkSession,
    snapshot: Snapshot,
    files: Seq[AddFile]
) {

  /** A few rows that meet all conditions, by a Spark job.
    *
    * @param conditions
    *   on columns by their names, whatever relation they were resolved in
    * @return
    *   file name, and the columns that the conditions name as a JSON object
    */
  def where(conditions: Seq[Expression]): Seq[Row] = session.withActive {
    val table = snapshot.deltaLog.createDataFrame(snapshot, files)
    val plan = castToImpl(table).queryExecution.analyzed
    val resolver = session.sessionState.conf.resolver
    val named = conditions.map(_.transform { case attribute: Attribute =>
      plan.output.find(column => resolver(column.name, attribute.name))
        .getOrElse(throw new IllegalArgumentException(s"${attribute.name} is no column."))
    })
    val columns = named.flatMap(_.references).map(_.name).distinct
    DataFrameUtils.ofRows(session, Filter(named.reduce(And), plan))
      .select(col("_metadata.file_name"), to_json(struct(columns.map(quoted): _*)))
      .limit(Meeting.RowsShown)
      .collect()
      .toSeq
  }

  private val session = RowsOfFiles.session(spark)

  private def quoted(name: String) = col(s"`${name.replace("`", "``")}`")
}

private[interlock] object RowsOfFiles {

  /** A session like the user's in which a file that cannot be read does not count as empty. */
  def session(users: SparkSession): classic.SparkSession = {
    val own = castToImpl(users).cloneSession()
    own.conf.set("spark.sql.files.ignoreMissingFiles", "false")
    own.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    own
  }
}
