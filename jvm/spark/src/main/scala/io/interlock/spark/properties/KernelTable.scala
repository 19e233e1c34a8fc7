package io.interlock.spark.properties

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** A catalog that loads these tables through Delta's log where a statement sets or unsets a
  * property of Interlock.
  */
trait ThroughDeltaLog extends TableCatalog

/** Delta tables as `spark.databricks.delta.v2.enableMode=STRICT` loads them, by Delta Kernel. */
object KernelTable {

  /** The table as it is loaded without this mode. */
  def throughDeltaLog(session: SparkSession, kernel: DeltaV2Table): DeltaTableV2 = {
    val ident = kernel.getIdentifier
    // A path may end in the version that is read, which the kernel's table does not tell.
    kernel.getCatalogTable.toScala.fold(DeltaTableV2(session, new Path(ident.name())))(table =>
      DeltaTableV2(session, new Path(table.location), Some(table), Some(ident.toString))
    )
  }

  /** Whether Interlock orders the commits to a table, which Delta Kernel would make past it. */
  def isOrdered(kernel: DeltaV2Table): Boolean =
    TablePolicy.coordinatorOf(kernel.properties().asScala.toMap).nonEmpty

  /** Whether a table is one of Delta's, in whichever mode it was loaded. */
  def isDelta(table: Table): Boolean = table match {
    case _: DeltaTableV2 | _: DeltaV2Table => true
    case _ => false
  }
}

/** Matches a table of Delta's in whichever mode it was loaded, and gives it as without STRICT. */
object AnyDeltaTable {
  def unapply(table: Table): Option[DeltaTableV2] = table match {
    case table: DeltaTableV2 => Some(table)
    case kernel: DeltaV2Table => Some(KernelTable.throughDeltaLog(SparkSession.active, kernel))
    case _ => None
  }
}
