package org.apache.spark.sql.delta.interlock.transaction

import java.util.concurrent.ConcurrentMap

import scala.util.Try

import com.google.common.collect.MapMaker
import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.properties.KernelTable
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Table, TableCapability}
import org.apache.spark.sql.delta.commands.cdc.CDCReader.DeltaCDFRelation
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.delta.interlock.ranges.RangeFileIndex
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.columnar.{
  CachedRDDBuilder,
  InMemoryRelation,
  InMemoryTableScanExec
}
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.{
  FileSourceScanExec,
  LogicalRDD,
  QueryExecution,
  RDDScanExec,
  SQLExecution,
  SparkPlan
}

/** A read of a table that Delta does not track in the transaction which depends on it.
  *
  * @param version
  *   the version that was read
  * @param scan
  *   what was selected; none if it may be any row
  */
final case class PlanRead(log: DeltaLog, version: Long, scan: Option[DeltaScan] = None) {

  /** Scans are equal if they have selected the same files, even by other predicates. */
  def isSame(other: PlanRead): Boolean =
    version == other.version && (scan.orNull eq other.scan.orNull)
}

/** The reads of a plan that Delta does not track, with the version that each has read: what was
  * planned, computed, cached or checkpointed before the transaction began, and what is no scan by
  * Delta. Subqueries are included. A version that the plan names counts if it was the newest when
  * the plan was analysed: an earlier one is the same whatever others commit.
  */
object PlanReads extends AdaptiveSparkPlanHelper {

  /** Those of a plan that is made while a transaction runs.
    *
    * @param state
    *   the table as the transaction reads it
    */
  def whileRunning(plan: LogicalPlan, state: Snapshot): Seq[PlanRead] =
    ofLeaves(plan, Some(state)).filter(read =>
      read.log.isSameLogAs(state.deltaLog) && !read.scan.exists(_.scannedSnapshot eq state)
    )

  /** Those of a query, if it was planned before the transaction began. */
  private[transaction] def before(query: QueryExecution, state: Snapshot): Seq[PlanRead] =
    if (!query.tracker.phases.contains(QueryPlanningTracker.OPTIMIZATION)) Nil
    else ofQuery(query).filter(_.log.isSameLogAs(state.deltaLog))

  // ---- what a plan does not tell later ----

  private val ofRows = remembered[RDD[_], Seq[PlanRead]]
  private val newest = remembered[TahoeLogFileIndex, java.lang.Boolean]
  private val planned = remembered[TahoeLogFileIndex, java.lang.Long]

  /** Keys are compared by identity, and forgotten when nothing else refers to them. */
  private def remembered[K <: AnyRef, V <: AnyRef]: ConcurrentMap[K, V] =
    new MapMaker().weakKeys().makeMap[K, V]()

  /** Remembers of a plan that has been analysed which of its named versions are the newest of their
    * tables, and what rows have read that Spark has just computed: a checkpoint, or a frame of
    * `foreachBatch`. Spark analyses the plan of such rows while their query runs.
    */
  def remember(plan: LogicalPlan): Unit = plan.foreachWithSubqueries {
    case Scan(index: TahoeLogFileIndex)
        if index.isTimeTravelQuery && index.version >= index.deltaLog.unsafeVolatileSnapshot.version =>
      newest.put(index, true): Unit
    case command: RunnableCommand => command.productIterator.foreach {
        case source: LogicalPlan => remember(source)
        case _ =>
      }
    case rows: LogicalRDD if rows eq plan =>
      Option(rows.rdd.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
        .flatMap(id => Option(SQLExecution.getQueryExecution(id.toLong)))
        .filter(_.analyzed.output.map(_.exprId) == rows.output.map(_.exprId))
        .foreach(query => ofRows.put(rows.rdd, ofQuery(query)))
    case _ =>
  }

  /** Remembers for the scans of a plan that is about to be optimised the version of their tables. */
  def planning(plan: LogicalPlan): Unit = plan.foreachWithSubqueries {
    case Scan(index: TahoeLogFileIndex) if !index.isTimeTravelQuery =>
      planned.put(index, index.deltaLog.unsafeVolatileSnapshot.version): Unit
    case _ =>
  }

  /** Whether the index is of a version that its query names, which was the newest then. */
  def isNewest(index: TahoeLogFileIndex): Boolean = newest.containsKey(index)

  private def ofRdd(rows: RDD[_]): Seq[PlanRead] = Option(ofRows.get(rows)).getOrElse(Nil)

  // ---- plans ----

  private def ofQuery(query: QueryExecution): Seq[PlanRead] =
    withPinned(query.analyzed, ofLeaves(query.optimizedPlan, None))(index =>
      Option(planned.get(index)).fold(index.snapshotAtAnalysis.version)(_.longValue)
    )

  private def ofCache(cached: CachedRDDBuilder): Seq[PlanRead] =
    withPinned(cached.logicalPlan, ofPhysical(cached.cachedPlan))(_.snapshotAtAnalysis.version)

  /** @param pinned
    *   the reads of the plan that was run. It may lack some of the analysed plan: a count that was
    *   answered from metadata, a scan that several parts of the plan share
    * @param since
    *   the version from which on a scan that it lacks may have read
    */
  private def withPinned(analyzed: LogicalPlan, pinned: Seq[PlanRead])(
      since: TahoeLogFileIndex => Long
  ): Seq[PlanRead] = {
    val scans = analyzed.collectWithSubqueries {
      case Scan(table: TahoeLogFileIndex) if !table.isTimeTravelQuery => table
    }
    val lacking = scans.groupBy(_.deltaLog.compositeId).values.flatMap { ofTable =>
      val log = ofTable.head.deltaLog
      val found = pinned.filter(_.log.isSameLogAs(log)).map(_.version)
      Option.when(found.size < ofTable.size)(
        PlanRead(log, found.minOption.getOrElse(ofTable.map(since).min))
      )
    }
    pinned ++ lacking ++ ofLeaves(analyzed, None)
  }

  /** @param running
    *   the state that a change feed without an end reads; none if it was read before
    */
  private def ofLeaves(plan: LogicalPlan, running: Option[Snapshot]): Seq[PlanRead] =
    plan.collectWithSubqueries {
      case InMemoryRelation(_, cached, _) => ofCache(cached)
      case rows: LogicalRDD => ofRdd(rows.rdd)
      case relation: DataSourceV2Relation => ofKernel(relation.table)
      case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) =>
        val analyzed = changes.snapshotWithSchemaMode.snapshot
        val end = if (changes.endingVersion.isEmpty) running.getOrElse(analyzed) else analyzed
        Option.when(changes.endingVersion.forall(_ >= analyzed.version))(
          PlanRead(analyzed.deltaLog, end.version)
        ).toSeq
      case Scan(index) => ofIndex(index).toSeq
    }.flatten

  private def ofIndex(index: TahoeFileIndex): Option[PlanRead] = index match {
    case range: RangeFileIndex =>
      Option.when(range.endsNewest)(PlanRead(range.deltaLog, range.version))
    case named: TahoeLogFileIndex if isNewest(named) =>
      Some(PlanRead(named.deltaLog, named.version))
    case prepared: PreparedDeltaFileIndex if prepared.versionScanned.isEmpty =>
      val scan = prepared.preparedScan
      Some(PlanRead(prepared.deltaLog, scan.scannedSnapshot.version, Some(scan)))
    case _ => None
  }

  private def ofPhysical(plan: SparkPlan): Seq[PlanRead] = collectWithSubqueries(plan) {
    case scan: FileSourceScanExec =>
      Some(scan.relation.location).collect { case index: TahoeFileIndex => index }
        .flatMap(ofIndex).toSeq
    case scan: InMemoryTableScanExec => ofCache(scan.relation.cacheBuilder)
    case scan: RDDScanExec => ofRdd(scan.rdd)
  }.flatten

  /** Delta Kernel reads the version that the catalog has loaded. Of a version that the query names
    * it does not tell whether it was the newest: it counts as a read of now.
    */
  private def ofKernel(table: Table): Seq[PlanRead] = (table match {
    case kernel: DeltaV2Table =>
      val isNamed = !kernel.capabilities.contains(TableCapability.BATCH_WRITE)
      Some(kernel -> (if (isNamed) Long.MaxValue else kernel.version.toLong))
    case KernelChanges(kernel, version) => Some(kernel -> version)
    case _ => None
  }).flatMap { case (kernel, version) =>
    Try(KernelTable.throughDeltaLog(SparkSession.active, kernel).deltaLog).toOption
      .map(PlanRead(_, version))
  }.toSeq

  private object Scan {
    def unapply(plan: LogicalPlan): Option[TahoeFileIndex] = Some(plan).collect {
      case LogicalRelation(HadoopFsRelation(index: TahoeFileIndex, _, _, _, _, _), _, _, _, _) =>
        index
    }
  }
}
