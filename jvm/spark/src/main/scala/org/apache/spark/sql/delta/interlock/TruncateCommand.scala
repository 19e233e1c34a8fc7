package org.apache.spark.sql.delta.interlock

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{And, Cast, EqualNullSafe, Expression, Literal}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StructField
import org.apache.spark.sql.{Row, SparkSession}

/** TRUNCATE of a table with a policy, whole or by partition.
  *
  * Unlike Delta's own command it commits also where the snapshot it reads is empty, so that rows
  * inserted meanwhile are removed and the version is recorded (conflict cells, trap 1).
  *
  * @param partition
  *   values of partition columns, as the statement writes them; empty for the whole table
  */
final case class TruncateCommand(table: DeltaTableV2, partition: Map[String, Option[String]])
    extends LeafRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val transaction = table.startTransaction()
    DeltaLog.assertRemovable(transaction.snapshot)
    val predicate = partition.map { case (name, value) =>
      equality(session, transaction.metadata.partitionSchema.fields.toSeq, name, value)
    }.reduceOption(And(_, _))
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

  private def equality(
      session: SparkSession,
      columns: Seq[StructField],
      name: String,
      value: Option[String]
  ): Expression = {
    val column = columns
      .find(c => session.sessionState.conf.resolver(c.name, name))
      .getOrElse(
        throw InterlockException.notAPartitionColumn(name, table.name(), columns.map(_.name))
      )
    val typed = value.fold(Literal(null, column.dataType)) { text =>
      val timeZone = Some(session.sessionState.conf.sessionLocalTimeZone)
      Literal(Cast(Literal(text), column.dataType, timeZone).eval(), column.dataType)
    }
    EqualNullSafe(UnresolvedAttribute.quoted(column.name), typed)
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
