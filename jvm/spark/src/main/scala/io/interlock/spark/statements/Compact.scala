package io.interlock.spark.statements

import scala.jdk.CollectionConverters._

import io.interlock.spark.compaction.CompactionKind
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.{AnyDeltaTable, TablePolicy}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.DeltaErrors
import org.apache.spark.sql.delta.interlock.compaction.CompactCommand

/** A compaction whose table is not resolved yet. */
final case class CompactStatement(
    child: LogicalPlan,
    partition: TablePartitionSpec,
    kind: CompactionKind
) extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): CompactStatement =
    copy(child = newChild)
}

/** Resolves the statement's table, which must be a Delta table with a policy. */
object ResolveCompact extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case CompactStatement(ResolvedTable(_, _, AnyDeltaTable(table), _), partition, kind) =>
      if (TablePolicy.named(table.properties().asScala.toMap).isEmpty)
        throw InterlockException.policyRequired(kind.name, table.name())
      CompactCommand(table, kind, partition.map { case (k, v) => k -> Option(v) })
    case CompactStatement(resolved: ResolvedTable, _, kind) =>
      throw DeltaErrors.notADeltaTableException(kind.name, resolved.table.name())
    case other => other
  }
}
