package org.apache.spark.sql.delta.interlock.statement

import java.util.concurrent.ConcurrentMap

import scala.util.Try

import com.google.common.collect.MapMaker
import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.interlock.spark.properties.{KernelTable, TablePolicy}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.AGGREGATE
import org.apache.spark.sql.connector.catalog.{Table, TableCapability}
import org.apache.spark.sql.delta.commands.cdc.CDCReader.DeltaCDFRelation
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.delta.interlock.ranges.RangeFileIndex
import org.apache.spark.sql.delta.stats.{DeltaScan, PreparedDeltaFileIndex}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.columnar._
import org.apache.spark.sql.execution.command.RunnableCommand
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation,
  DataSourceV2ScanRelation
}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** A read of a table that Delta does not track in the transaction which depends on it.
  *
  * @param version
  *   the version that was read
  * @param scan
  *   what was selected; none if it may be any row
  * @param thread
  *   the id of the thread that has read it, if that is known
  */
final case class PlanRead(
    log: DeltaLog,
    version: Long,
    scan: Option[DeltaScan] = None,
    thread: Option[Long] = None
) {

  // Scans are equal if they have selected the same files, even by other predicates.
  override def hashCode: Int = (version, thread).hashCode
  override def equals(other: Any): Boolean = other match {
    case PlanRead(`log`, `version`, same, `thread`) => scan.orNull eq same.orNull
    case _ => false
  }
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
  private[interlock] def before(query: QueryExecution, state: Snapshot): Seq[PlanRead] =
    if (!query.tracker.phases.contains(QueryPlanningTracker.OPTIMIZATION)) Nil
    else ofQuery(query).filter(_.log.isSameLogAs(state.deltaLog))

  // ---- what a plan does not tell later ----

  private val MostKept = 100
  private val ofRows = remembered[RDD[_], Seq[PlanRead]]

  /** The thread that has analysed a relation whose version was fixed then: that of a named version
    * only if it was the newest.
    */
  private val analysedBy = remembered[AnyRef, java.lang.Long]

  /** The reads of a plan that Delta may answer from metadata, so that no scan is left. */
  private val counted = TreeNodeTag[Seq[PlanRead]]("interlock.counted")

  /** Keys are compared by identity, and forgotten when nothing else refers to them. */
  private def remembered[K <: AnyRef, V <: AnyRef]: ConcurrentMap[K, V] =
    new MapMaker().weakKeys().makeMap[K, V]()

  /** Remembers of a plan that has been analysed who has fixed the versions that it reads, and what
    * rows have read that Spark has just computed: a checkpoint, or a frame of `foreachBatch`. Spark
    * analyses the plan of such rows while their query runs.
    */
  def remember(plan: LogicalPlan): Unit = plan.foreachWithSubqueries {
    case Fixed(relation) => analysedBy.putIfAbsent(relation, thread): Unit
    case command: RunnableCommand => command.productIterator.foreach {
        case source: LogicalPlan => remember(source)
        case _ =>
      }
    case rows: LogicalRDD if rows eq plan =>
      Option(rows.rdd.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
        .flatMap(id => Option(SQLExecution.getQueryExecution(id.toLong)))
        .filter(_.analyzed.output.map(_.exprId) == rows.output.map(_.exprId))
        .foreach(query => ofRows.put(rows.rdd, kept(ofQuery(query))))
    case _ =>
  }

  /** The reads, to be kept as long as the rows: only of tables with a policy what was selected. A
    * program that checkpoints in a loop has ever more of them: then each table counts as read whole.
    */
  private def kept(reads: Seq[PlanRead]): Seq[PlanRead] = {
    def hasPolicy(log: DeltaLog) =
      TablePolicy.named(log.unsafeVolatileSnapshot.metadata.configuration).nonEmpty
    val ours = reads.map(read =>
      read.copy(
        scan = read.scan.filter(_ => hasPolicy(read.log)),
        thread = read.thread.orElse(Some(thread))
      )
    ).distinct
    if (ours.size <= MostKept) ours
    else ours.groupBy(read => read.log -> read.thread).map { case ((log, by), all) =>
      PlanRead(log, all.map(_.version).min, thread = by)
    }.toSeq
  }

  /** Remembers with a plan that is about to be optimised what Delta may answer from metadata. */
  def planning(plan: LogicalPlan): Unit =
    if (plan.containsPattern(AGGREGATE) && plan.getTagValue(counted).isEmpty)
      plan.setTagValue(counted, countedIn(plan)(_.deltaLog.unsafeVolatileSnapshot.version))

  /** Whether the index is of a version that its query names, which was the newest then. */
  def isNewest(index: TahoeLogFileIndex): Boolean =
    index.isTimeTravelQuery && analysedBy.containsKey(index)

  private def thread: Long = Thread.currentThread.getId

  private def ofRdd(rows: RDD[_]): Seq[PlanRead] = Option(ofRows.get(rows)).getOrElse(Nil)

  // ---- plans ----

  private def ofQuery(query: QueryExecution): Seq[PlanRead] = {
    val plan = query.optimizedPlan
    val late = plan.collectWithSubqueries { case Scan(index) => unplanned(index) }.flatten
    ofPlanned(query.analyzed, ofLeaves(plan, None) ++ late, plan.getTagValue(counted))
  }

  private def ofCache(cached: CachedRDDBuilder): Seq[PlanRead] = {
    val plan = stripAQEPlan(cached.cachedPlan)
    val tag = plan.logicalLink.flatMap(_.getTagValue(counted))
    ofPlanned(cached.logicalPlan, ofPhysical(cached.cachedPlan), tag)
  }

  /** @param scans
    *   the reads of the plan that was run
    * @param fromMetadata
    *   what was remembered with it; none if its optimizer has lost that
    */
  private def ofPlanned(
      analyzed: LogicalPlan,
      scans: Seq[PlanRead],
      fromMetadata: Option[Seq[PlanRead]]
  ): Seq[PlanRead] = {
    val all = fromMetadata.getOrElse(countedIn(analyzed)(_.snapshotAtAnalysis.version))
    (scans ++ all ++ ofLeaves(analyzed, None)).distinct
  }

  /** Reads of all rows, at a version or later, for a count, minimum or maximum. */
  private def countedIn(plan: LogicalPlan)(version: TahoeLogFileIndex => Long): Seq[PlanRead] = {
    def table(plan: LogicalPlan): Option[TahoeLogFileIndex] = plan match {
      case Scan(index: TahoeLogFileIndex) => Some(index).filterNot(_.isTimeTravelQuery)
      case _: Project | _: SubqueryAlias | _: View => table(plan.children.head)
      case _ => None
    }
    plan.collectWithSubqueries {
      case whole: Aggregate if whole.groupingExpressions.isEmpty => whole
    }.filter(_.aggregateExpressions.flatMap(_.collect { case found: AggregateExpression =>
      found.aggregateFunction
    }).forall {
      case _: Count | _: Min | _: Max => true
      case _ => false
    }).flatMap(whole => table(whole.child))
      .map(index => PlanRead(index.deltaLog, version(index)))
  }

  /** @param running
    *   the state that a change feed without an end reads; none if it was read before
    */
  private def ofLeaves(plan: LogicalPlan, running: Option[Snapshot]): Seq[PlanRead] =
    plan.collectWithSubqueries {
      case InMemoryRelation(_, cached, _) => ofCache(cached)
      case rows: LogicalRDD => ofRdd(rows.rdd)
      case relation: DataSourceV2Relation => ofKernel(relation.table)
      case scan: DataSourceV2ScanRelation => ofKernel(scan.relation.table)
      case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) =>
        val analyzed = changes.snapshotWithSchemaMode.snapshot
        val end = if (changes.endingVersion.isEmpty) running.getOrElse(analyzed) else analyzed
        Option.when(changes.endingVersion.forall(_ >= analyzed.version))(
          PlanRead(analyzed.deltaLog, end.version, thread = threadOf(changes))
        ).toSeq
      case Scan(index) => ofIndex(index).toSeq
    }.flatten.distinct

  private def ofIndex(index: TahoeFileIndex): Option[PlanRead] = index match {
    case range: RangeFileIndex => Option.when(range.endsNewest)(fixed(range))
    case named: TahoeLogFileIndex if isNewest(named) => Some(fixed(named))
    case prepared: PreparedDeltaFileIndex if prepared.versionScanned.isEmpty =>
      val scan = prepared.preparedScan
      Some(PlanRead(prepared.deltaLog, scan.scannedSnapshot.version, Some(scan)))
    case _ => None
  }

  /** A scan that is planned when it runs, as without `spark.databricks.delta.stats.skipping`. */
  private def unplanned(index: TahoeFileIndex): Option[PlanRead] = Some(index).collect {
    case table: TahoeLogFileIndex if !table.isTimeTravelQuery =>
      PlanRead(table.deltaLog, table.snapshotAtAnalysis.version)
  }

  private def fixed(index: TahoeFileIndex) =
    PlanRead(index.deltaLog, index.version, thread = threadOf(index))

  private def threadOf(relation: AnyRef): Option[Long] =
    Option(analysedBy.get(relation)).map(_.longValue)

  private def ofPhysical(plan: SparkPlan): Seq[PlanRead] = collectWithSubqueries(plan) {
    case scan: FileSourceScanExec =>
      Some(scan.relation.location).collect { case index: TahoeFileIndex => index }
        .flatMap(index => ofIndex(index).orElse(unplanned(index))).toSeq
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
      .map(PlanRead(_, version, thread = threadOf(table)))
  }.toSeq

  object Scan {
    def unapply(plan: LogicalPlan): Option[TahoeFileIndex] = Some(plan).collect {
      case LogicalRelation(HadoopFsRelation(index: TahoeFileIndex, _, _, _, _, _), _, _, _, _) =>
        index
    }
  }

  /** A relation whose version is fixed when its query is analysed. */
  private object Fixed {
    def unapply(plan: LogicalPlan): Option[AnyRef] = Some(plan).collect {
      case Scan(index: TahoeLogFileIndex)
          if index.isTimeTravelQuery &&
            index.version >= index.deltaLog.unsafeVolatileSnapshot.version => index
      case Scan(range: RangeFileIndex) => range
      case LogicalRelation(changes: DeltaCDFRelation, _, _, _, _) => changes
      case relation: DataSourceV2Relation => relation.table
    }
  }
}
