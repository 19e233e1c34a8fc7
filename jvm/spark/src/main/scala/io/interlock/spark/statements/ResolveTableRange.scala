package io.interlock.spark.statements

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.AnyDeltaTable
import io.interlock.spark.ranges.{TableFunction, TableRange}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter,
  LogicalPlan,
  Project,
  SubqueryAlias,
  View
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.delta.RowCommitVersion
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.interlock.ranges.{RangeFileIndex, RangeReader}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}

/** Turns a range whose table is resolved into a scan of the files that may have rows of the range.
  */
final class ResolveTableRange(session: SparkSession) extends Rule[LogicalPlan] {

  import ResolveTableRange.NotWhole

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case TableFunction(relation) => relation
    case range: TableRange if range.child.resolved =>
      EliminateSubqueryAliases(range.child) match {
        case leaf @ WholeTable(relation, index) => changed(range, leaf, relation, index)
        case _: View => throw InterlockException.rangeNeedsTable(name(range.child), "a view")
        case _ => throw InterlockException.rangeNeedsTable(name(range.child), NotWhole)
      }
  }

  private def name(relation: LogicalPlan): String = relation match {
    case SubqueryAlias(identifier, _) => identifier.toString
    case relation: DataSourceV2Relation => relation.table.name()
    case other =>
      other.collectFirst {
        case LogicalRelation(HadoopFsRelation(files, _, _, _, _, _), _, _, _, _) =>
          files.rootPaths.mkString(", ")
      }.getOrElse(other.nodeName)
  }

  private def changed(
      range: TableRange,
      leaf: LogicalPlan,
      relation: LogicalRelation,
      index: TahoeLogFileIndex
  ): LogicalPlan = {
    val ends = new RangeReader(index.deltaLog, index.catalogTableOpt).ends(range.after, range.until)
    val log = index.deltaLog
    val files =
      new RangeFileIndex(session, log, log.dataPath, ends.snapshot, ends.after, ends.isNewest)
    val base = log.buildHadoopFsRelationWithFileIndex(ends.snapshot, files, bucketSpec = None)
    val scan = LogicalRelation(
      base,
      toAttributes(base.schema),
      relation.catalogTable.map(_.copy(stats = None)),
      isStreaming = false,
      stream = None
    )
    val named = range.child.resolveOperatorsUp { case `leaf` => scan.withMetadataColumns() }
    val (metadata, columns) = named.output.partition {
      case MetadataAttributeWithLogicalName(_, FileFormat.METADATA_NAME) => true
      case _ => false
    }
    // Before 4.2 Spark looks for metadata columns in the table of an alias, but not below a filter.
    Project(columns, Filter(changedBehind(ends.after, metadata.head), named))
  }

  private def changedBehind(version: Long, metadata: Attribute): Expression = {
    val field = Literal(RowCommitVersion.METADATA_STRUCT_FIELD_NAME)
    GreaterThan(ExtractValue(metadata, field, conf.resolver), Literal(version))
  }
}

private object ResolveTableRange {
  val NotWhole = "no Delta table, a folder of one, or one at an earlier version"
}

/** The relation of a whole Delta table in its newest version. In a MERGE it is still the catalog's
  * relation; elsewhere Delta has already replaced it by a relation of files.
  */
private object WholeTable {
  def unapply(plan: LogicalPlan): Option[(LogicalRelation, TahoeLogFileIndex)] = plan match {
    case relation: DataSourceV2Relation =>
      Some(relation.table).collect { case AnyDeltaTable(table) => table.toLogicalRelation }
        .flatMap(unapply)
    case relation: LogicalRelation =>
      Some(relation.relation).collect {
        case HadoopFsRelation(index: TahoeLogFileIndex, _, _, _, _, _) =>
          (relation, index)
      }.filter { case (_, index) => !index.isTimeTravelQuery && index.partitionFilters.isEmpty }
    case _ => None
  }
}
