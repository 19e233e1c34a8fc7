package org.apache.spark.sql.delta.interlock.block

import java.nio.file.{Path => LocalPath}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import io.interlock.coordinator.QuickLocalFileSystem
import io.interlock.rules.OperationClass
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.properties.Exclusive
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.sql.delta.interlock.commit.StagedFiles
import org.apache.spark.sql.delta.interlock.judging.MatchedScan
import org.apache.spark.sql.delta.interlock.statement.PlanRead
import org.apache.spark.sql.delta.interlock.table.{PropertyRules, ReadTable}
import org.apache.spark.sql.delta.stats.DeltaScan
import org.apache.spark.sql.delta.{CurrentTransactionInfo, DeltaLog, RowId, Serializable, Snapshot}

/** A statement of a block that has been run.
  *
  * @param info
  *   its reads and its actions
  * @param operationClass
  *   its class, if a policy governs it
  * @param matched
  *   the scans of which only matching rows count
  * @param replacesNull
  *   whether a dynamic overwrite also replaces partitions with a NULL value
  * @param files
  *   the files that it wrote
  * @param hooks
  *   what Delta would do after its commit
  * @param number
  *   which of the block's statements it is, from 1 on
  */
final private[block] class StagedStatement(
    val info: CurrentTransactionInfo,
    val operationClass: Option[OperationClass],
    val matched: Seq[MatchedScan],
    val replacesNull: Boolean,
    val files: StagedFiles,
    val hooks: Seq[PostCommitHook],
    val number: Int
)

/** A table in a block: the version that the block reads, which is the newest one when the block first
  * names the table, and what the block has done to it.
  *
  * @param count
  *   the number of statements that the block has run, on all tables
  * @param isOwn
  *   whether the calling thread runs for the session of the block: others may come by its plans, as by
  *   a global temporary view
  */
final private[block] class BlockTable(
    val log: DeltaLog,
    val catalogTable: Option[CatalogTable],
    val base: Snapshot,
    count: AtomicInteger,
    isOwn: () => Boolean
) {
  @volatile private var isOpen = true
  private var planReads = Set.empty[PlanRead]

  /** The block's files, of which some may be live. */
  val staged = new StagedFiles(log)
  @volatile private var now = new State(base, NetActions(), Vector.empty)

  private val read = new ReadTable(log, catalogTable, base)
  val name: String = read.name

  /** The highest row id that the table had given; -1 if it gives none. */
  val highestRowId: Long = RowId.extractHighWatermark(base).getOrElse(-1L)

  def state: State = now

  /** The number of the statement that is being staged. */
  def nextNumber(): Int = count.incrementAndGet()

  /** Whether the block has run more than one statement. */
  def isOfSeveral: Boolean = count.get > 1

  private def queue = Coordinators
    .queue(SparkSession.active, log, base.metadata.configuration, base.metadata.id)

  /** Whether commits to the two tables can be made together. */
  def commitsWith(other: BlockTable): Boolean =
    queue.exists(own => other.queue.exists(own.commitsWith))

  /** Whether it is the table of another log too, which a link leads to. */
  def isIn(other: DeltaLog, found: Snapshot): Boolean = found.metadata.id == base.metadata.id && {
    def real(log: DeltaLog): Any = if (!QuickLocalFileSystem.isLocal(log.logPath)) log.logPath
    else LocalPath.of(log.logPath.toUri.getPath).toRealPath()
    real(log) == real(other)
  }

  /** Whether only writers with Interlock may write it. */
  def isExclusive: Boolean = Exclusive.of(base.metadata.configuration) &&
    base.protocol.writerFeatureNames.contains(Exclusive.Feature)

  /** Whether its policy judges jobs as if they had run one after the other. */
  def isSerializable: Boolean =
    new PropertyRules(SparkSession.active, read).policy.exists(_.isolation == Serializable.toString)

  /** Counts reads of queries. */
  def reads(more: Iterable[PlanRead]): Unit = synchronized { planReads ++= more }

  /** Takes a statement in.
    *
    * @param before
    *   the state in which it began
    * @return
    *   the table after it
    */
  def stage(before: BlockTable#State, statement: StagedStatement): Snapshot = synchronized {
    if (!isOpen) throw InBlock.refusedLate(name)
    if (now ne before) throw InBlock.refusedAtOnce(name)
    val net = now.net.after(statement.info.actions)
    staged.adopt(statement.files, statement.info.actions)
    val snapshot = if (net.isEmpty) base else new BlockSnapshot(base, net)
    now = new State(snapshot, net, now.statements :+ statement)
    now.snapshot
  }

  /** The files of the table as the block sees it.
    *
    * @throws io.interlock.spark.errors.InterlockException
    *   if another job has changed the table's columns since the block began to read it
    */
  def index(files: TahoeLogFileIndex): TahoeLogFileIndex = {
    val state = now
    files match {
      case ours: BlockFileIndex if ours.state == state.number => ours
      case _ =>
        if (InBlock.columns(files.metadata) != InBlock.columns(base.metadata))
          throw InBlock.refusedOtherColumns(name)
        val ofTable = files match {
          case older: BlockFileIndex => older.ofTable
          case plain => plain
        }
        new BlockFileIndex(
          ofTable,
          state.number,
          () => Option.when(isOpen && isOwn())(now.forQueries)
        )
    }
  }

  /** To be called when the block ends: from then on no statement is part of it. */
  def close(): Unit = synchronized { isOpen = false }

  /** What queries have read of the table as it was without the block. */
  def readByPlans: Iterable[PlanRead] = synchronized(planReads)

  private def queried(scan: Option[DeltaScan]): Unit = reads(Seq(
    PlanRead(
      log,
      base.version,
      scan.map(found =>
        found.copy(files = found.files.filterNot(isOfBlock))(
          base,
          found.partitionFilters,
          found.dataFilters,
          found.partitionLikeDataFilters,
          found.rewrittenPartitionLikeDataFilters,
          found.unusedFilters,
          found.scanDurationMs,
          found.dataSkippingType
        )
      )
    )
  ))

  /** Whether others do not know the file. */
  def isOfBlock(file: AddFile): Boolean =
    now.net.added.contains(file.path) && !now.net.removed.contains(file.path)

  final class State(
      val snapshot: Snapshot,
      val net: NetActions,
      val statements: Vector[StagedStatement]
  ) {
    val number: Long = BlockTable.states.getAndIncrement()
    lazy val forQueries = new ReadSnapshot(snapshot, queried)
  }
}

private object BlockTable {

  /** Numbers for the states of all tables in all blocks. */
  private val states = new AtomicLong
}
