package io.interlock.spark.errors

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Finds out what happened to a table that is no longer at the path where a statement has read it.
  */
object GoneTable {

  /** @param read
    *   the table as the statement has read it
    * @param catalogTable
    *   the table in the catalog, if it has a name
    * @return
    *   what happened, as a clause
    */
  def whatBecame(
      session: SparkSession,
      deltaLog: DeltaLog,
      read: Snapshot,
      catalogTable: Option[CatalogTable]
  ): String =
    if (idOf(deltaLog).contains(read.metadata.id))
      "Its log was put back to another state, as from a backup,"
    else
      catalogTable.flatMap(renamed(session, _, read.metadata.id)).fold(
        "The table was dropped, or dropped and created anew,"
      )(name => s"The table was renamed to $name")

  /** The table's new name in the same database. RENAME moves a managed table to another folder and
    * keeps its creation time.
    */
  private def renamed(session: SparkSession, table: CatalogTable, id: String): Option[String] =
    Try {
      val catalog = session.sessionState.catalog
      catalog.listTables(table.database).iterator
        .flatMap(name => Try(catalog.getTableMetadata(name)).toOption)
        .filter(found =>
          found.tableType == CatalogTableType.MANAGED &&
            found.createTime == table.createTime && DeltaSourceUtils.isDeltaTable(found.provider)
        )
        .find(found => idOf(DeltaLog.forTable(session, found)).contains(id))
        .map(_.identifier.unquotedString)
    }.toOption.flatten

  private def idOf(log: DeltaLog): Option[String] = Try(log.update()).toOption
    .filter(_.version >= 0).map(_.metadata.id)
}
