package io.interlock.spark.procedures

import java.util.Locale

import io.interlock.spark.compaction.CompactionKind
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.history.NamedTable
import io.interlock.spark.text.SqlText
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.delta.interlock.compaction.CompactCommand
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** ALTER TABLE ... COMPACT MINOR, COMPACT MAJOR or MERGE SMALLFILES. */
private[procedures] object CompactProcedure extends InterlockProcedure {
  private val kinds = Map(
    "minor" -> CompactionKind.Minor,
    "major" -> CompactionKind.Major,
    "smallfiles" -> CompactionKind.MergeSmallFiles
  )
  private val choice = "'minor', 'major' or 'smallfiles'"
  private val kind =
    ProcedureParameter.in("kind", StringType).comment(choice).defaultValue("'minor'").build()

  override val name: String = "compact"
  override val parameters: Array[ProcedureParameter] =
    Array(Parameters.Table, kind, Parameters.Partition)
  override val outputType: StructType = CompactCommand.schema
  override val description: String = "Compacts the files of a table with a policy."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val asked = arguments.text(kind.name)
    val words = asked.flatMap(word => kinds.get(word.toLowerCase(Locale.ROOT))).getOrElse(
      throw InterlockException.invalidArgument("the kind", asked.getOrElse("NULL"), choice)
    ).name
    val values = arguments.partition.map { case (column, value) =>
      s"${quoteIdentifier(column)} = ${value.fold("NULL")(SqlText.literal)}"
    }
    val partition = if (values.isEmpty) "" else values.mkString("PARTITION (", ", ", ")")
    session
      .sql(s"ALTER TABLE ${NamedTable.inSql(arguments.table)} $partition $words")
      .collect()
      .iterator
  }
}
