package io.interlock.spark.properties

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.catalog.{Table, TableCatalog}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils.isDeltaDataSourceName
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand

/** Refuses `interlock.*` properties and options on tables that are not Delta tables: Interlock does
  * not see their writers, so the properties would protect nothing.
  */
object DeltaOnly extends (LogicalPlan => Unit) {

  /** Statements about Delta tables pass; the catalog and the transaction check their properties. */
  override def apply(plan: LogicalPlan): Unit = plan match {
    case CreateDataSourceTableCommand(table, _) => refuse(table)
    case CreateDataSourceTableAsSelectCommand(table, _, _, _) => refuse(table)
    case CreateTableCommand(table, _) => refuse(table)
    case create: CreateTable => refuse(create.name, create.tableSpec)
    case create: CreateTableAsSelect => refuse(create.name, create.tableSpec)
    case replace: ReplaceTable => refuse(replace.name, replace.tableSpec)
    case replace: ReplaceTableAsSelect => refuse(replace.name, replace.tableSpec)
    case CreateTableLikeCommand(target, source, _, provider, properties, _)
        if !provider.exists(isDeltaDataSourceName) =>
      refuse(target.unquotedString, like(provider, source.unquotedString), properties)
    case CopyOfDefinition(name, source, provider, properties) if !isDelta(provider, source) =>
      refuse(named(name), like(provider, "another table"), properties)
    case AlterTableSetPropertiesCommand(table, properties, isView) =>
      refuse(table.unquotedString, if (isView) AView else NoDelta, properties)
    case SetTableProperties(ResolvedTable(_, name, table, _), properties)
        if !KernelTable.isDelta(table) =>
      refuse(name.toString, NoDelta, properties)
    case SetTableProperties(ResolvedTable(catalog, name, table, _), properties) =>
      refuseUnseen(catalog, name.toString, table, properties.keys)
    case UnsetTableProperties(ResolvedTable(catalog, name, table, _), keys, _) =>
      refuseUnseen(catalog, name.toString, table, keys)
    case AlterTableDropFeature(ResolvedTable(catalog, name, table, _), feature, _)
        if feature.equalsIgnoreCase(Exclusive.Feature) =>
      refuseUnseen(catalog, name.toString, table, Seq(Exclusive.Key))
    case view: CreateViewCommand => refuse(view.name.unquotedString, AView, view.properties)
    case create: CreateNamespace => refuse("a database", "no table", create.properties)
    case set: SetNamespaceProperties => refuse("a database", "no table", set.properties)
    case write: InsertIntoHadoopFsRelationCommand if write.catalogTable.isEmpty =>
      WriterOptions.refuse(write.options.keys)
    case _ =>
  }

  /** Without Interlock's catalog Spark changes such a table's properties beside its log. */
  private def refuseUnseen(
      catalog: TableCatalog,
      name: String,
      table: Table,
      keys: Iterable[String]
  ): Unit = table match {
    case _: DeltaV2Table if !catalog.isInstanceOf[ThroughDeltaLog] =>
      keys.toSeq.sorted.find(TableProperties.isOurs).foreach(key =>
        throw InterlockException(
          "INTERLOCK_PROPERTY_NEEDS_CATALOG",
          "property" -> key,
          "table" -> name,
          "catalog" -> catalog.name
        )
      )
    case _ =>
  }

  private def isDelta(provider: Option[String], source: LogicalPlan): Boolean =
    provider.fold(source match {
      case ResolvedTable(_, _, table, _) => KernelTable.isDelta(table)
      case _ => false
    })(isDeltaDataSourceName)

  private def refuse(table: CatalogTable): Unit =
    if (!table.provider.exists(isDeltaDataSourceName))
      refuse(
        table.identifier.unquotedString,
        using(table.provider),
        table.properties ++ table.storage.properties
      )

  /** If the statement names no format, another catalog decides it itself, and the table is not
    * refused.
    */
  private def refuse(name: LogicalPlan, spec: TableSpecBase): Unit =
    if (spec.provider.exists(!isDeltaDataSourceName(_)))
      refuse(named(name), using(spec.provider), spec.properties)

  private def refuse(name: String, found: String, properties: Map[String, String]): Unit =
    properties.keys.toSeq.sorted.find(TableProperties.isOurs).foreach(key =>
      throw InterlockException(
        "INTERLOCK_PROPERTY_NEEDS_DELTA",
        "property" -> key,
        "table" -> name,
        "found" -> found
      )
    )

  private def named(plan: LogicalPlan): String = plan match {
    case ResolvedIdentifier(_, identifier) => identifier.toString
    case other => other.nodeName
  }

  private val AView = "a view"
  private val NoDelta = "no Delta table"

  private def using(provider: Option[String]): String =
    provider.fold(NoDelta)(format => s"a table USING $format")

  private def like(provider: Option[String], source: String): String =
    provider.fold(s"a table like $source, which is $NoDelta")(format => s"a table USING $format")
}
