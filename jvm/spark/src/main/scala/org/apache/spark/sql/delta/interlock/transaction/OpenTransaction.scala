package org.apache.spark.sql.delta.interlock.transaction

import io.interlock.rules.{OperationClass, Policy}
import io.interlock.spark.commits.RunningChange
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.DeletionVectorUtils
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, MatchedReads, MatchedScan}
import org.apache.spark.sql.delta.interlock.transaction.CommitState.{Judged, Made, Unsent}
import org.apache.spark.sql.delta.stats.DeltaScan
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

  /** Whether the commit is in the queue and waits for its outcome. */
  @volatile private var isSent = false

  private[transaction] def sending[A](send: => A): A = {
    isSent = true
    try send
    finally isSent = false
  }

  private[transaction] def session: SparkSession = spark
  private[transaction] val times = new CommitTimes

  private[transaction] def isMade: Boolean = state == Made

  /** Whether the log still belongs to the table that was read. Other threads ask this too. */
  private[transaction] def isSameTable: Boolean

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

  /** Not needed: Delta has done so when it created the transaction that this one replaces. */
  override protected def maybeBackfillOnConstruction(): Unit = ()

  /** Refuses a statement that reads the table to change it before it writes deletion vectors. */
  override def trackReadPredicates(
      filters: Seq[Expression],
      partitionOnly: Boolean,
      shouldRewriteFilter: Boolean
  ): Unit = {
    rules.refuseOthers()
    if (!isJudging) {
      super.trackReadPredicates(filters, partitionOnly, shouldRewriteFilter)
      for (reads <- nextReads; read <- predicates.lastOption) matched :+= MatchedScan(read, reads)
      nextReads = None
    }
  }

  override def trackFilesRead(files: Seq[AddFile]): Unit =
    if (!isJudging) super.trackFilesRead(files)

  override def filesForScan(filters: Seq[Expression], keepNumRecords: Boolean): DeltaScan = {
    val scan = super.filesForScan(filters, keepNumRecords)
    if (!isJudging) planned ++= predicates.lastOption.map(scan -> _)
    scan
  }

  /** Whether the statement is judged before it writes. What is read for that does not count. */
  @volatile private var isJudging = false

  private def predicates = readPredicates.toArray(Array.empty[DeltaTableReadPredicate]).toVector

  private var nextReads: Option[MatchedReads] = None

  /** The scans of the statement's queries, with their predicates. */
  private var planned = Vector.empty[(DeltaScan, DeltaTableReadPredicate)]

  /** The scans of which only matching rows count. */
  private var matched = Vector.empty[MatchedScan]

  /** Tells what the next scan of the table is for. */
  def scansFor(reads: MatchedReads): Unit = nextReads = Some(reads)

  /** Tells what a scan is for. */
  def scansFor(scan: DeltaScan, reads: MatchedReads): Unit =
    for ((known, read) <- planned if !isJudging && (known eq scan))
      matched :+= MatchedScan(read, reads)

  /** Whether the statement reads the table in ways that Delta does not track. */
  @volatile protected var readsUntracked = false

  /** Reports such a read; it counts as a read of the whole table. */
  def alsoReads(): Unit = if (!isJudging) readsUntracked = true

  /** Whether a dynamic overwrite also replaces partitions with a NULL value. */
  private var replacesNull = true

  /** The classes that the statement may have before its commit, of those for which compactions make
    * way.
    */
  @volatile private var mayBe = Set.empty[OperationClass]

  private def yieldedTo(classes: OperationClass*) =
    rules.policy.fold(Set.empty[OperationClass])(_.yieldedTo.intersect(classes.toSet))

  /** Whether it is an UPDATE, DELETE or MERGE. */
  @volatile private var isChange = false

  /** Tells that the statement changes rows. */
  def changesRows(): Unit = {
    isChange = true
    mayBe = yieldedTo(OperationClass.Mutate)
  }

  /** What the statement has read, if compactions make way for it. Other threads ask this. */
  private[transaction] def yieldedFor(since: Long): Option[RunningChange] = {
    val classes =
      governed.fold(mayBe)(commit => commit.policy.yieldedTo & Set(commit.operationClass))
    if (classes.isEmpty || isSent || isMade) None
    else {
      val files = state match {
        case Judged(_, info, _, _, _) => Option.unless(info.readWholeTable)(
            info.readFiles.map(_.path) ++
              info.actions.collect { case remove: RemoveFile => remove.path }
          )
        case _ =>
          // Such a statement may not have planned its scan yet.
          val isPlanned = !isChange || predicates.nonEmpty
          val isKnown = isPlanned && !readTheWholeTable && !readsUntracked
          Option.when(isKnown)(readFiles.toArray(Array.empty[AddFile]).map(_.path).toSet)
      }
      Some(RunningChange(since, RunningTransactions.owner(session), classes, files))
    }
  }

  /** An UPDATE, DELETE or MERGE that has written nothing yet. */
  private var unwritten: Option[Unwritten] = None

  /** Tells that the statement changes rows, and has written nothing when it calls `writeFiles`. */
  def changes(statement: Unwritten): Unit = unwritten = Some(statement)

  /** Ends a statement that has lost already.
    *
    * @throws DeltaConcurrentModificationException
    *   the conflict that its commit would raise
    */
  protected def endIfLost(statement: Unwritten): Unit

  private[transaction] def judging[A](judge: => A): A = {
    isJudging = true
    try judge
    finally isJudging = false
  }

  protected def governedBy(policy: Policy, op: Operation, actions: Seq[Action]): GovernedCommit =
    GovernedCommit(policy, op, actions, snapshot, spark, replacesNull, matched)

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    if (options.flatMap(_.useNullIntolerantEqualityWithDPO).contains(true)) replacesNull = false
    val first = unwritten
    unwritten = None
    first.foreach(endIfLost)
    def write = writes.run(data, isOptimize)(super.writeFiles(_, options, isOptimize, constraints))
    if (isChange || isOptimize || options.exists(_.rearrangeOnly)) write
    else {
      mayBe = yieldedTo(OperationClass.Append, OperationClass.Overwrite)
      try write
      finally mayBe = Set.empty
    }
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
