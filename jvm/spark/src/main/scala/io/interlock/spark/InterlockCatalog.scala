package io.interlock.spark

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.TableChange.SetProperty
import org.apache.spark.sql.connector.catalog.{Identifier, StagedTable, Table, TableChange}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Delta's catalog with an early check of `interlock.*` properties.
  *
  * The transaction checks them again at every change of a table's metadata; here the statement
  * fails before it writes anything, and ALTER TABLE sets beside a policy what the policy requires.
  */
class InterlockCatalog extends DeltaCatalog {

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = {
    Handshake.check()
    DeltaHook.install()
    super.initialize(name, options)
  }

  override def createTable(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]
  ): Table = {
    checkEarly(properties)
    super.createTable(ident, schema, partitions, properties)
  }

  override def stageCreate(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]
  ): StagedTable = {
    checkEarly(properties)
    super.stageCreate(ident, schema, partitions, properties)
  }

  override def stageReplace(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]
  ): StagedTable = {
    checkEarly(properties)
    super.stageReplace(ident, schema, partitions, properties)
  }

  override def stageCreateOrReplace(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]
  ): StagedTable = {
    checkEarly(properties)
    super.stageCreateOrReplace(ident, schema, partitions, properties)
  }

  private def checkEarly(properties: util.Map[String, String]): Unit =
    if (Option(properties.get("provider")).exists(DeltaSourceUtils.isDeltaDataSourceName))
      TableProperties.check(properties.asScala.toMap)

  override def alterTable(ident: Identifier, changes: TableChange*): Table = {
    val set = changes.collect { case change: SetProperty => change.property -> change.value }.toMap
    val required: Map[String, String] =
      if (!set.keys.exists(_.toLowerCase.startsWith("interlock."))) Map.empty
      else
        loadTable(ident) match {
          case table: DeltaTableV2 =>
            TableProperties.check(set)
            TableProperties.requiredByAlter(table.properties().asScala.toMap, set)
          case _ => Map.empty
        }
    val beside = required.map { case (key, value) => TableChange.setProperty(key, value) }
    super.alterTable(ident, changes ++ beside: _*)
  }
}
