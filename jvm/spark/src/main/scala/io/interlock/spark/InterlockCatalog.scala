package io.interlock.spark

import java.util

import scala.jdk.CollectionConverters._
import scala.util.{DynamicVariable, Try}

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.errors.{InterlockException, MadeMeanwhile, StorageFault}
import io.interlock.spark.properties.{
  Exclusive,
  Handshake,
  KernelTable,
  PolicyDigest,
  TablePolicy,
  TableProperties,
  ThroughDeltaLog,
  WriterOptions
}
import io.interlock.spark.ranges.AfterLastCommit
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException
import org.apache.spark.sql.connector.catalog.TableChange.{RemoveProperty, SetProperty}
import org.apache.spark.sql.connector.catalog.{Identifier, StagedTable, Table, TableChange}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.delta.catalog.{DeltaCatalog, DeltaTableV2}
import org.apache.spark.sql.delta.interlock.log.{FreshSnapshot, LogListing}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils
import org.apache.spark.sql.delta.tablefeatures.DropFeature
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Delta's catalog with an early check of `interlock.*` properties.
  *
  * The transaction checks them again at every change of a table's metadata. With the check here a
  * statement fails before it writes anything.
  */
class InterlockCatalog extends DeltaCatalog with ThroughDeltaLog {
  import InterlockCatalog._

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
    try super.createTable(ident, schema, partitions, withoutThere(ident, properties)(_ => true))
    catch {
      case MadeMeanwhile() if MadeMeanwhile.table(this, ident).exists(isPoliced) =>
        throw new TableAlreadyExistsException(ident)
    }
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
    super.stageCreateOrReplace(
      ident,
      schema,
      partitions,
      withoutThere(ident, properties)(TableProperties.isOurs)
    )
  }

  /** The properties without those of Interlock that a table at this path has already, and in a
    * statement without a query all that it has: Delta compares the rest with everything that it has.
    */
  private def withoutThere(
      ident: Identifier,
      properties: util.Map[String, String]
  )(isLeftOut: String => Boolean): util.Map[String, String] = {
    val own = properties.asScala.toMap
    val path = own.get("location").orElse(Option.when(isPathIdentifier(ident))(ident.name))
    path.filter(_ => TablePolicy.named(own).nonEmpty).fold(properties) { path =>
      val there = Try(DeltaTableV2(spark, new Path(path)).initialSnapshot.metadata.configuration)
        .getOrElse(Map.empty[String, String])
      if (TablePolicy.named(there) != TablePolicy.named(own)) properties
      else own.filterNot { case (key, value) => isLeftOut(key) && there.get(key).contains(value) }
        .asJava
    }
  }

  private def checkEarly(properties: util.Map[String, String]): Unit =
    if (Option(properties.get("provider")).exists(DeltaSourceUtils.isDeltaDataSourceName)) {
      val (options, own) = properties.asScala.toMap.partition(_._1.startsWith(OptionPrefix))
      WriterOptions.refuse(options.keys.map(_.stripPrefix(OptionPrefix)))
      TableProperties.check(own)
      PolicyDigest.check(Map.empty, own)
    }

  /** The snapshot is read here, as Delta would list the log only once for it. */
  override def loadTable(ident: Identifier): Table = {
    val loaded = throughDeltaLog(super.loadTable(ident))
    loaded match {
      // If it cannot be read, those who need it are told so.
      case table: DeltaTableV2 => Try(LogListing.complete {
          if (FreshSnapshot.refresh(table.deltaLog, table.catalogTable)) table.initialSnapshot
        }): Unit
      case _ =>
    }
    loaded
  }

  /** With `spark.databricks.delta.v2.enableMode=STRICT` Delta loads tables whose writes are commits
    * of Delta Kernel, which nobody judges. A table that Interlock orders, or whose properties
    * for Interlock a statement changes, is loaded as without it.
    */
  private def throughDeltaLog(loaded: Table): Table = loaded match {
    case kernel: DeltaV2Table if changesOurs.value || KernelTable.isOrdered(kernel) =>
      KernelTable.throughDeltaLog(spark, kernel)
    case other => other
  }

  private val changesOurs = new DynamicVariable(false)

  /** @param micros
    *   since 1970 UTC; a time after the last commit means the latest version if the table has a
    *   policy
    */
  override def loadTable(ident: Identifier, micros: Long): Table = {
    val latest = Some(loadTable(ident)).collect { case table: DeltaTableV2 => table }
      .flatMap(AfterLastCommit.version(_, Math.floorDiv(micros, 1000L)))
    latest.fold(super.loadTable(ident, micros))(version => loadTable(ident, version.toString))
  }

  override def alterTable(ident: Identifier, changes: TableChange*): Table = {
    val drops = changes.collect { case drop: DropFeature => drop.featureName }
    val mapped = changes.map(inProperties)
    val sets = mapped.collect { case set: SetProperty => set.property }
    val unsets = mapped.collect { case unset: RemoveProperty => unset.property }
    changesOurs.withValue((sets ++ unsets).exists(TableProperties.isOurs)) {
      val setsPolicy = sets.contains(TablePolicy.PolicyKey)
      val before =
        if (setsPolicy || drops.nonEmpty) propertiesOf(ident) else Map.empty[String, String]
      if (drops.nonEmpty)
        TablePolicy.policyOf(before).foreach(TableProperties.refuseDrop(_, drops))
      try super.alterTable(ident, mapped: _*)
      catch {
        case failed @ StorageFault.OfOneCommit(reason)
            if setsPolicy && TablePolicy.named(before).isEmpty =>
          throw InterlockException.of(
            failed,
            "INTERLOCK_BINDING_INCOMPLETE",
            "table" -> ident.toString,
            "operation" -> "SET TBLPROPERTIES",
            "reason" -> reason
          )
      }
    }
  }

  private def propertiesOf(ident: Identifier): Map[String, String] = propertiesOf(loadTable(ident))

  private def propertiesOf(table: Table): Map[String, String] = table match {
    case table: DeltaTableV2 => table.properties().asScala.toMap
    case _ => Map.empty
  }

  private def isPoliced(table: Table) = TablePolicy.named(propertiesOf(table)).nonEmpty
}

private object InterlockCatalog {

  /** Spark passes options as properties with this prefix. */
  val OptionPrefix = "option."

  /** DROP FEATURE of the one that Delta does not know, which a property of the table brings. */
  def inProperties(change: TableChange): TableChange = change match {
    case drop: DropFeature if drop.featureName.equalsIgnoreCase(Exclusive.Feature) =>
      TableChange.removeProperty(Exclusive.Key)
    case other => other
  }
}
