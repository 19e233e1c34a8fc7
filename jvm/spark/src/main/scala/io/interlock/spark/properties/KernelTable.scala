package io.interlock.spark.properties

import scala.jdk.OptionConverters._

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Delta tables as `spark.databricks.delta.v2.enableMode=STRICT` loads them, by Delta Kernel. */
object KernelTable {

  /** The table as it is loaded without this mode. */
  def throughDeltaLog(
      session: SparkSession,
      ident: Identifier,
      kernel: DeltaV2Table
  ): DeltaTableV2 = {
    val catalogTable = kernel.getCatalogTable.toScala
    DeltaTableV2(session, kernel.getTablePath, catalogTable, catalogTable.map(_ => ident.toString))
  }

  /** Whether a table is one of Delta's, in whichever mode it was loaded. */
  def isDelta(table: Table): Boolean = table match {
    case _: DeltaTableV2 | _: DeltaV2Table => true
    case _ => false
  }
}
