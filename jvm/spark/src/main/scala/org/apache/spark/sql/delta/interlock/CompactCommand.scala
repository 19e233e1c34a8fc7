package org.apache.spark.sql.delta.interlock

import io.interlock.rules.OperationClass
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.{CompactionKind, CompactionSettings, PolicyDigest}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.optimize.FileSizeStatsWithHistogram
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.delta.{
  DeltaLog,
  DeltaOperationMetrics,
  DeltaOperations,
  OptimisticTransaction,
  RowTracking
}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** COMPACT MINOR, COMPACT MAJOR and MERGE SMALLFILES of a table with a policy: one transaction that
  * rewrites files and changes no row.
  *
  * @param partition
  *   values of partition columns, as the statement writes them; empty for the whole table
  */
final case class CompactCommand(
    table: DeltaTableV2,
    kind: CompactionKind,
    partition: Map[String, Option[String]]
) extends LeafRunnableCommand {

  override val output: Seq[Attribute] = CompactCommand.attributes

  override def run(session: SparkSession): Seq[Row] = {
    PartitionScope.refusePath(session, table, kind.name)
    val transaction = table.startTransaction()
    DeltaLog.assertRemovable(transaction.snapshot)
    val operationClass = permittedClass(transaction)
    val columns = transaction.metadata.partitionSchema
    val scope = PartitionScope.predicate(session, table.name(), columns, partition)
    val bins = plan(session, transaction, scope)
    if (bins.isEmpty) Seq(CompactResult.nothing(operationClass))
    else {
      val done = rewrite(transaction, bins)
      commit(session, transaction, scope, done)
      Seq(CompactResult.of(transaction, done, operationClass))
    }
  }

  private def permittedClass(transaction: OptimisticTransaction): OperationClass = {
    val policy = PolicyDigest.enforced(table.name(), transaction.metadata.configuration)
      .getOrElse(throw InterlockException.policyRequired(kind.name, table.name()))
    val operationClass = kind match {
      case CompactionKind.Major => policy.majorCompaction
      case _ => policy.compaction
    }
    if (!policy.permits(operationClass))
      throw InterlockException.operationNotSupported(kind.name, table.name(), policy.name)
    operationClass
  }

  /** The bins; the transaction has then read the files in them and no others. */
  private def plan(
      session: SparkSession,
      transaction: OptimisticTransaction,
      scope: Option[Expression]
  ): Seq[Seq[AddFile]] = {
    val conf = session.sessionState.conf
    val settings = CompactionSettings.of(
      transaction.metadata.configuration,
      session.conf.getOption,
      (
        conf.getConf(DeltaSQLConf.DELTA_OPTIMIZE_MIN_FILE_SIZE),
        conf.getConf(DeltaSQLConf.DELTA_OPTIMIZE_MAX_FILE_SIZE)
      )
    )
    val partitions = transaction.metadata.physicalPartitionSchema
    val files = transaction.snapshot.filesForScan(scope.toSeq, keepNumRecords = true).files
    val bins = Bins.of(files, kind, settings, _.normalizedPartitionValues(session, partitions))
    transaction.trackReadPredicates(scope.toSeq)
    transaction.trackFilesRead(bins.flatten)
    bins
  }

  private def rewrite(
      transaction: OptimisticTransaction,
      bins: Seq[Seq[AddFile]]
  ): Seq[Rewritten] =
    new OrderedRewrite(transaction, table.name()).run(bins) { rows =>
      transaction.writeFiles(rows, None, isOptimize = true, Nil)
    }

  private def commit(
      session: SparkSession,
      transaction: OptimisticTransaction,
      scope: Option[Expression],
      done: Seq[Rewritten]
  ): Unit = {
    val now = System.currentTimeMillis()
    val added = done.flatMap(_.output).map(_.copy(dataChange = false))
    val removed = done.flatMap(_.inputs).map(_.removeWithTimestamp(now, dataChange = false))
    val metrics = CompactOperation.metrics(added, removed).map { case (name, value) =>
      val metric = SQLMetrics.createMetric(session.sparkContext, name)
      metric.set(value)
      name -> metric
    }
    transaction.registerSQLMetrics(session, metrics)
    transaction.commit(
      added ++ removed,
      new CompactOperation(kind, scope),
      RowTracking.addPreservedRowTrackingTagIfNotSet(transaction.snapshot)
    )
    ()
  }
}

object CompactCommand {

  /** What a compaction returns. */
  val schema: StructType = CompactResult.schema

  private def attributes: Seq[Attribute] = schema.map { field =>
    AttributeReference(field.name, field.dataType, field.nullable)()
  }
}

/** A compaction as the history shows it. */
final private[interlock] class CompactOperation(kind: CompactionKind, scope: Option[Expression])
    extends DeltaOperations.OperationWithPredicates(kind.name, scope.toSeq) {
  override def parameters: Map[String, Any] =
    Map("predicate" -> JsonUtils.toJson(scope.toSeq.map(_.sql)))
  override val operationMetrics: Set[String] = DeltaOperationMetrics.OPTIMIZE
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true
  override val isInPlaceFileMetadataUpdate: Option[Boolean] = Some(false)
  override def canChangePartitionColumns: Boolean = false
}

private[interlock] object CompactOperation {

  /** The metrics that OPTIMIZE has, by the same names. */
  def metrics(added: Seq[AddFile], removed: Seq[RemoveFile]): Map[String, Long] = {
    val sizes = FileSizeStatsWithHistogram.create(added.map(_.size).sorted)
    Map(
      "numAddedFiles" -> added.size.toLong,
      "numRemovedFiles" -> removed.size.toLong,
      "numAddedBytes" -> added.map(_.size).sum,
      "numRemovedBytes" -> removed.flatMap(_.size).sum,
      "numDeletionVectorsRemoved" -> removed.count(_.deletionVector != null).toLong
    ) ++ sizes.toSeq.flatMap { size =>
      Seq(
        "minFileSize" -> size.min,
        "p25FileSize" -> size.p25,
        "p50FileSize" -> size.p50,
        "p75FileSize" -> size.p75,
        "maxFileSize" -> size.max
      )
    }
  }
}
