package io.interlock.spark

import scala.jdk.CollectionConverters._

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.DeltaErrors
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.CompactCommand

/** A compaction that can be asked for in SQL.
  *
  * @param name
  *   its name in the table's history
  * @param packsSmallFilesOnly
  *   whether it leaves files alone that are large enough
  */
sealed abstract class CompactionKind(val name: String, val packsSmallFilesOnly: Boolean)
    extends Product
    with Serializable {

  /** The statement's last words. */
  def words: Seq[String] = name.split(' ').toSeq
}

object CompactionKind {
  case object Minor extends CompactionKind("COMPACT MINOR", packsSmallFilesOnly = true)
  case object Major extends CompactionKind("COMPACT MAJOR", packsSmallFilesOnly = false)
  case object MergeSmallFiles extends CompactionKind("MERGE SMALLFILES", packsSmallFilesOnly = true)

  val all: Seq[CompactionKind] = Seq(Minor, Major, MergeSmallFiles)
}

/** A compaction whose table is not known yet. */
final case class CompactStatement(
    child: LogicalPlan,
    partition: TablePartitionSpec,
    kind: CompactionKind
) extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): CompactStatement =
    copy(child = newChild)
}

/** Finds the table's kind; only Delta tables with a policy are compacted. */
object ResolveCompact extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case CompactStatement(ResolvedTable(_, _, table: DeltaTableV2, _), partition, kind) =>
      if (TableProperties.named(table.properties().asScala.toMap).isEmpty)
        throw InterlockException.policyRequired(kind.name, table.name())
      CompactCommand(table, kind, partition.map { case (k, v) => k -> Option(v) })
    case CompactStatement(resolved: ResolvedTable, _, kind) =>
      throw DeltaErrors.notADeltaTableException(kind.name, resolved.table.name())
    case other => other
  }
}
