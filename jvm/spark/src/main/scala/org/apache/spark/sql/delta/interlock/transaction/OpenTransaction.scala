package org.apache.spark.sql.delta.interlock.transaction

import java.io.FileNotFoundException

import io.interlock.coordinator.CommitQueue
import io.interlock.rules.Policy
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.DeletionVectorUtils
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.interlock.judging.GovernedCommit
import org.apache.spark.sql.delta.interlock.transaction.CommitState.{Made, Unsent}
import org.apache.spark.sql.delta.stats.DeltaScan
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.{Dataset, SparkSession}

/** A transaction before its commit: the statement's reads, writes and properties, and the state
  * that the parts of the commit share.
  */
abstract private[transaction] class OpenTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot
) extends OptimisticTransaction(deltaLog, catalogTable, snapshot) {
  private[transaction] val table = new ReadTable(deltaLog, catalogTable, snapshot)
  private[transaction] val staged = new StagedFiles(deltaLog)

  @volatile private[transaction] var state: CommitState = Unsent

  /** The commit, if a policy judges it. */
  @volatile private[transaction] var governed: Option[GovernedCommit] = None

  protected lazy val rules = new TableRules(spark, table)
  private lazy val writes = new StatementWrites(this, rules)

  /** What the statement reads, beyond what Delta tracks. */
  val reads = new StatementReads

  private[transaction] def session: SparkSession = spark
  private[transaction] val times = new CommitTimes

  private[transaction] def isMade: Boolean = state == Made

  /** Whether the log still belongs to the table that was read. Other threads ask this too. */
  private[transaction] def isSameTable: Boolean =
    !rules.isCoordinated(metadata) || table.isThere(preCommitLogSegment)

  private[transaction] def refuseAnother(): Unit = if (!isSameTable)
    throw table.whyUnseen.getOrElse(
      new FileNotFoundException(s"$logPath is no longer the log of ${table.name}.")
    )

  /** Whether the queue's commits from version `next` on are of the log that this transaction has
    * read or was judged against; None if the queue does not tell.
    */
  private[transaction] def isOfSameLog(queue: CommitQueue, next: Long): Option[Boolean] =
    preCommitLogSegment.deltas.reverseIterator
      .find(file => file.getLen > 0 && FileNames.deltaVersion(file) == next - 1)
      .flatMap(queue.knows(next - 1, _))

  /** Lets the queue forget the commits of another log. */
  private[transaction] def startOverIfOther(queue: CommitQueue, next: Long): Unit =
    if (isOfSameLog(queue, next).contains(false)) queue.startOver()

  /** The transaction's reads without actions, for a check without a commit. */
  private[transaction] def withoutActions(op: Operation) = CurrentTransactionInfo(
    txnId = txnId,
    readPredicates = predicates,
    readFiles = readFiles.toArray(Array.empty[AddFile]).toSet,
    readWholeTable = readTheWholeTable,
    readAppIds = readTxn.toSet,
    metadata = metadata,
    protocol = protocol,
    actions = Nil,
    readSnapshot = snapshot,
    commitInfo = Some(commitInfo),
    readRowIdHighWatermark =
      RowId.extractHighWatermark(snapshot).getOrElse(RowId.MISSING_HIGH_WATER_MARK),
    catalogTable = catalogTable,
    domainMetadata = Nil,
    op = op
  )

  // ---- what the statement reads and writes ----

  /** Does nothing: Delta has done it when it created the transaction that this one replaces. */
  override protected def maybeBackfillOnConstruction(): Unit = ()

  /** Refuses a statement that reads the table to change it before it writes deletion vectors. */
  override def trackReadPredicates(
      filters: Seq[Expression],
      partitionOnly: Boolean,
      shouldRewriteFilter: Boolean
  ): Unit = {
    rules.refuseOthers()
    reads.counted {
      super.trackReadPredicates(filters, partitionOnly, shouldRewriteFilter)
      reads.tracked(predicates.lastOption)
    }
  }

  override def trackFilesRead(files: Seq[AddFile]): Unit =
    reads.counted(super.trackFilesRead(files))

  /** Counts reads of plans, which Delta does not track. */
  private[transaction] def track(
      predicates: Seq[DeltaTableReadPredicate],
      files: Set[AddFile]
  ): Unit = {
    predicates.foreach(readPredicates.add)
    trackFilesRead(files.toSeq)
  }

  override def filterFiles(filters: Seq[Expression], keepNumRecords: Boolean): Seq[AddFile] = {
    val files = super.filterFiles(reads.confined(filters), keepNumRecords)
    if (unwritten.exists(_.marksRows)) beginsToWrite()
    files
  }

  override def filesForScan(filters: Seq[Expression], keepNumRecords: Boolean): DeltaScan = {
    val scan = super.filesForScan(filters, keepNumRecords)
    reads.planned(scan, predicates.lastOption)
    scan
  }

  private[transaction] def predicates: Vector[DeltaTableReadPredicate] =
    readPredicates.toArray(Array.empty[DeltaTableReadPredicate]).toVector

  /** Whether a dynamic overwrite also replaces partitions with a NULL value. */
  private var replacesNull = true

  /** The statement, if it is an UPDATE, DELETE or MERGE. */
  private var changing: Option[Unwritten] = None

  /** The same, while it has written nothing yet. */
  private var unwritten: Option[Unwritten] = None

  /** See [[Unwritten]]; other statements may read and write anywhere. */
  private[transaction] def isConfined: Boolean = changing.exists(_.isConfined)

  /** See [[Unwritten]]. */
  private[transaction] def marksRows: Boolean = changing.exists(_.marksRows)

  /** Tells that the statement changes rows, and has written nothing when it calls `writeFiles`, or
    * `filterFiles` if it marks rows.
    */
  def changes(statement: Unwritten): Unit = {
    changing = Some(statement)
    unwritten = changing
  }

  private def beginsToWrite(): Unit = {
    val first = unwritten
    unwritten = None
    first.foreach(endIfLost)
  }

  /** Ends a statement that has lost already.
    *
    * @throws DeltaConcurrentModificationException
    *   the conflict that its commit would raise
    */
  protected def endIfLost(statement: Unwritten): Unit

  protected def governedBy(policy: Policy, op: Operation, actions: Seq[Action]): GovernedCommit =
    GovernedCommit(policy, op, actions, snapshot, spark, replacesNull, reads.matched)

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    if (options.flatMap(_.useNullIntolerantEqualityWithDPO).contains(true)) replacesNull = false
    reads.add(PlanReads.before(data.queryExecution, snapshot))
    beginsToWrite()
    writes.run(data, isOptimize)(super.writeFiles(_, options, isOptimize, constraints))
  }

  // ---- table properties ----

  private var isReplaced = false

  override def updateMetadataForNewTable(metadata: Metadata): Unit = {
    isReplaced = !table.isNew
    super.updateMetadataForNewTable(metadata)
  }

  override protected def updateMetadataInternal(
      proposed: Metadata,
      withoutDefaults: Boolean
  ): Unit =
    super.updateMetadataInternal(rules.completed(proposed, isReplaced), withoutDefaults)

  /** CREATE TABLE LIKE sets the source's protocol after the metadata; the features set before must
    * be kept.
    */
  override def updateProtocol(protocol: Protocol): Unit =
    super.updateProtocol(rules.merged(protocol, newProtocol, metadata))

  /** Delta leaves out the feature of exclusive tables from each protocol that it makes. */
  private def fence(): Unit = if (newMetadata.nonEmpty || newProtocol.nonEmpty) {
    val fenced = rules.fenced(protocol, metadata)
    if (fenced != protocol) newProtocol = Some(fenced)
  }

  override protected def prepareCommit(actions: Seq[Action], op: Operation): Seq[Action] = {
    val prepared = super.prepareCommit(actions, op)
    fence()
    newProtocol.fold(prepared)(_ +: prepared.filterNot(_.isInstanceOf[Protocol]))
  }

  /** Also called by large commits, which are not prepared. */
  override protected def updateMetadataAndProtocolWithRequiredFeatures(
      proposed: Option[Metadata],
      protocols: Seq[Protocol]
  ): Unit = {
    super.updateMetadataAndProtocolWithRequiredFeatures(proposed, protocols)
    fence()
  }

  override protected def getIsolationLevelToUse(
      actions: Seq[Action],
      op: Operation
  ): IsolationLevel =
    rules.isolation(super.getIsolationLevelToUse(actions, op), governed, metadata)

  /** The level of a commit by what is known before it has actions. */
  private[transaction] def isolationOf(
      statement: Unwritten,
      commit: GovernedCommit
  ): IsolationLevel = rules.isolation(
    if (statement.changesData) Serializable else super.getIsolationLevelToUse(Nil, statement.op),
    Some(commit),
    metadata
  )

  override protected def getAssertDeletionVectorWellFormedFunc(
      session: SparkSession,
      op: Operation
  ): Action => Unit =
    rules.wellFormed(super.getAssertDeletionVectorWellFormedFunc(session, op), op, metadata)(
      DeletionVectorUtils.deletionVectorsReadable(snapshot, newProtocol, newMetadata)
    )
}
