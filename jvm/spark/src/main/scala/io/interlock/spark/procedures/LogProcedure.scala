package io.interlock.spark.procedures

import io.interlock.spark.audit.ConflictRecord
import io.interlock.spark.history.{BlockHistory, LiveFiles, NamedTable, VersionRecord}
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** A procedure that reads the log of one table, and so can be a table function as well
  * ([[LogFunctions]]).
  *
  * @param read
  *   reads the log; the text says what asks, for errors
  */
sealed abstract private[procedures] class LogProcedure(
    override val name: String,
    override val description: String,
    override val outputType: StructType,
    options: ProcedureParameter*
)(val read: (SparkSession, DeltaTableV2, String, Arguments) => Iterator[Row])
    extends InterlockProcedure {
  final override val parameters: Array[ProcedureParameter] = (Parameters.Table +: options).toArray

  final override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    read(session, NamedTable.load(session, arguments.table, name), name, arguments)
}

/** SHOW HISTORY as a procedure. */
private[procedures] object HistoryProcedure
    extends LogProcedure(
      "history",
      "The versions of a table and what each did, newest first.",
      VersionRecord.schema,
      Parameters.Partition,
      Parameters.Limit
    )((session, table, statement, arguments) => {
      val history = NamedTable.history(session, table, statement, arguments.partition)
      arguments.limited(history.records()).map(_.toRow)
    })

/** The two kinds of versions, without what they did. */
private[procedures] object VersionsProcedure
    extends LogProcedure(
      "versions",
      "The ID versions and time versions of a table, for VERSION AS OF and TIMESTAMP AS OF.",
      VersionColumns.schema,
      Parameters.Limit
    )((session, table, statement, arguments) => {
      val history = NamedTable.history(session, table, statement, Map.empty)
      arguments.limited(history.records()).map(record => VersionColumns.of(record.toRow))
    })

private object VersionColumns {
  private val names = Seq("version", "time_version", "timestamp", "operation")
  private val fields = names.map(VersionRecord.schema.fieldIndex)

  val schema: StructType = StructType(names.map(VersionRecord.schema(_)))

  def of(row: Row): Row = Row.fromSeq(fields.map(row.get))
}

private[procedures] object FilesProcedure
    extends LogProcedure(
      "files",
      "The live data files of a table, their rows, and the files that each was compacted from.",
      LiveFiles.schema,
      Parameters.Partition
    )((session, table, statement, arguments) =>
      LiveFiles.of(session, table, statement, arguments.partition)
    )

private[procedures] object BlocksProcedure
    extends LogProcedure(
      "blocks",
      "The atomic blocks of a table, newest first, and their versions of other tables.",
      BlockHistory.schema,
      Parameters.Limit
    )((session, table, statement, arguments) =>
      arguments.limited(BlockHistory.of(NamedTable.snapshot(session, table, statement)))
    )

private[procedures] object ConflictsProcedure
    extends LogProcedure(
      "conflicts",
      "The commits of a table that were rejected, or passed others, newest first.",
      ConflictRecord.schema,
      Parameters.Limit
    )((session, table, statement, arguments) =>
      arguments.limited(AuditedTable.conflicts(session, table, statement))
    )
