package io.interlock.spark.statements

import io.interlock.spark.predicates.PartitionScope
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession}

/** TRUNCATE of a table with a policy, whole or by partition.
  *
  * Unlike Delta's own command it also commits if the snapshot that it reads is empty, so that rows
  * inserted meanwhile are removed and the version is recorded (conflict cells, trap 1).
  */
final case class TruncateCommand(table: DeltaTableV2, partition: Map[String, Option[String]])
    extends LeafRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = Block.inBlock(session) {
    PartitionScope.refusePath(session, table, "TRUNCATE TABLE")
    val transaction = table.startTransaction()
    DeltaLog.assertRemovable(transaction.snapshot)
    val columns = transaction.metadata.partitionSchema
    val orElse = ", or remove rows by other columns with DELETE"
    val predicate = PartitionScope.predicate(session, table.name(), columns, partition, orElse)
    val now = System.currentTimeMillis()
    val removed = transaction.filterFiles(predicate.toSeq).map(_.removeWithTimestamp(now))
    val operation =
      predicate.fold[DeltaOperations.Operation](DeltaOperations.Truncate())(
        new TruncatePartition(_)
      )
    transaction.commit(removed, operation)
    session.sharedState.cacheManager.recacheByPlan(castToImpl(session), table.toLogicalRelation)
    Seq.empty
  }
}

/** TRUNCATE of the partitions that a predicate selects. */
final class TruncatePartition(predicate: Expression)
    extends DeltaOperations.OperationWithPredicates("TRUNCATE", Seq(predicate)) {
  override def parameters: Map[String, Any] = Map("predicate" -> predicate.sql)
  override val operationMetrics: Set[String] = DeltaOperations.Truncate().operationMetrics
  override def changesData: Boolean = true
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(false)
  override def canChangePartitionColumns: Boolean = false
}
