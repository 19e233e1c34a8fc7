package org.apache.spark.sql.delta.interlock.compaction

import io.interlock.rules.OperationClass
import io.interlock.spark.compaction.{Bins, CompactOperation, CompactionKind}
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.predicates.PartitionScope
import io.interlock.spark.properties.{PolicyDigest, Setting}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.{OptimisticTransaction, RowTracking}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession}

/** COMPACT MINOR, COMPACT MAJOR and MERGE SMALLFILES of a table with a policy: one transaction that
  * rewrites files and changes no row.
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

  /** The bins of files to rewrite; the transaction then counts these files as read, and no others.
    */
  private def plan(
      session: SparkSession,
      transaction: OptimisticTransaction,
      scope: Option[Expression]
  ): Seq[Seq[AddFile]] = {
    val conf = session.sessionState.conf
    def value[A](setting: Setting[A], default: A) =
      setting.in(transaction.metadata.configuration, session.conf.getOption(_)).getOrElse(default)
    val small =
      value(Setting.SmallFileSize, conf.getConf(DeltaSQLConf.DELTA_OPTIMIZE_MIN_FILE_SIZE))
    val target =
      value(Setting.TargetFileSize, conf.getConf(DeltaSQLConf.DELTA_OPTIMIZE_MAX_FILE_SIZE))
    val least =
      if (kind.packsSmallFilesOnly) value(Setting.MinFiles, CompactCommand.MinFiles) else 1
    val partitions = transaction.metadata.physicalPartitionSchema
    val files = transaction.snapshot.filesForScan(scope.toSeq, keepNumRecords = true).files
    val taken = files.filter(file => !kind.packsSmallFilesOnly || file.size < small)
    val bins = Bins.of(taken, target, _.normalizedPartitionValues(session, partitions))
      .filter(_.size >= least)
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
  private val MinFiles = 2

  /** The columns that a compaction returns. */
  val schema: StructType = CompactResult.schema

  private def attributes: Seq[Attribute] = schema.map { field =>
    AttributeReference(field.name, field.dataType, field.nullable)()
  }
}
