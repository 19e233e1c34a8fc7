package io.interlock.spark.statements

import scala.jdk.CollectionConverters._

import io.interlock.spark.properties.{AnyDeltaTable, TablePolicy}
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedPartitionSpec}
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

/** A TRUNCATE whose table is not resolved yet. Delta's rules must not see it first, since they
  * refuse the form with a partition.
  */
final case class TruncateStatement(child: LogicalPlan, partition: Option[TablePartitionSpec])
    extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): TruncateStatement =
    copy(child = newChild)

  /** The statement as Spark's parser made it. */
  def original: LogicalPlan =
    partition.fold[LogicalPlan](TruncateTable(child)) { values =>
      TruncatePartition(child, UnresolvedPartitionSpec(values))
    }
}

/** Runs before resolution. */
object MarkTruncate extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case TruncateTable(child) if !child.resolved => TruncateStatement(child, None)
    case TruncatePartition(child, UnresolvedPartitionSpec(values, _)) if !child.resolved =>
      TruncateStatement(child, Some(values))
    case other => other
  }
}

/** Leaves the statement to Spark and Delta unless its table has a policy. */
object ResolveTruncate extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case TruncateStatement(ResolvedTable(_, _, AnyDeltaTable(table), _), partition)
        if TablePolicy.named(table.properties().asScala.toMap).nonEmpty =>
      TruncateCommand(table, partition.getOrElse(Map.empty).map { case (k, v) => k -> Option(v) })
    case statement: TruncateStatement if statement.child.resolved => statement.original
    case other => other
  }
}
