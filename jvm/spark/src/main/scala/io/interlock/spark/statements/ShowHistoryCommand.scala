package io.interlock.spark.statements

import io.interlock.spark.history.{NamedTable, VersionRecord}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession}

/** SHOW HISTORY FOR TABLE. */
final case class ShowHistoryCommand(
    table: DeltaTableV2,
    partition: Map[String, Option[String]],
    limit: Option[Int]
) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = toAttributes(VersionRecord.schema)

  override def run(session: SparkSession): Seq[Row] = {
    val records = NamedTable.history(session, table, "SHOW HISTORY", partition).records()
    limit.fold(records)(records.take).map(_.toRow).toSeq
  }
}
