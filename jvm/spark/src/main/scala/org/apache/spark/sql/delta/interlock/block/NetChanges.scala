package org.apache.spark.sql.delta.interlock.block

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.actions.{AddFile, FileAction}
import org.apache.spark.sql.delta.commands.cdc.CDCReader._
import org.apache.spark.sql.delta.interlock.judging.{ChangedRows, StrictSession}
import org.apache.spark.sql.delta.interlock.rebase.RowVectors
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, SparkSession}

/** The change feed of a block's commit: each row's net change, as if one statement had made it. A row
  * before and after the block is known by its row id. Rows that the block has inserted have ids above
  * all of those before it, and rows that it has copied unchanged have the commit version of before.
  */
final private[block] class NetChanges(table: BlockTable, net: NetActions) {
  private val files = new ChangedRows(
    net.removed.values.toSeq,
    net.added.values.toSeq,
    new RowVectors(table.log, staged = _ => ()),
    isTold = _ => true
  )

  /** Writes the files of the feed. */
  def write(): Seq[FileAction] = StrictSession.of(SparkSession.active).withActive {
    new OptimisticTransaction(table.log, table.catalogTable, table.base)
      .writeFiles(castToImpl(changes))
  }

  private def changes: DataFrame = {
    val isNew = col("version") > table.base.version
    val before = rows(files.dead).select(col("id"), col("row").as("before"))
    val after =
      rows(files.added).select(col("id"), col("version"), when(isNew, col("row")).as("after"))
    val entries = when(col("after").isNull, array(change("before", CDC_TYPE_DELETE_STRING)))
      .when(col("before").isNull, array(change("after", CDC_TYPE_INSERT)))
      .otherwise(array(
        change("before", CDC_TYPE_UPDATE_PREIMAGE),
        change("after", CDC_TYPE_UPDATE_POSTIMAGE)
      ))
    before.join(after, Seq("id"), "full_outer")
      .where(col("version").isNull || isNew)
      .select(explode(entries).as("change"))
      .select(col("change.row.*"), col(s"change.$CDC_TYPE_COLUMN_NAME"))
  }

  private def rows(files: Seq[AddFile]): DataFrame = table.log.createDataFrame(table.base, files)
    .select(
      col("_metadata.row_id").as("id"),
      col("_metadata.row_commit_version").as("version"),
      struct(col("*")).as("row")
    )

  private def change(side: String, kind: String) =
    struct(col(side).as("row"), lit(kind).as(CDC_TYPE_COLUMN_NAME))
}
