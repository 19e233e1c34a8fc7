package org.apache.spark.sql.delta.interlock.statement

import scala.annotation.nowarn
import scala.jdk.CollectionConverters._

import io.delta.storage.commit.Commit
import io.interlock.coordinator.Interrupt
import io.interlock.rules.{OperationClass, Policy}
import io.interlock.spark.claims.ClaimingStatement
import io.interlock.spark.commits.{Coordinators, ForeignWriters}
import io.interlock.spark.compaction.Lineage
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.amt.AMTWriterManager
import org.apache.spark.sql.delta.commands.DeletionVectorUtils
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.coordinatedcommits._
import org.apache.spark.sql.delta.interlock.commit._
import org.apache.spark.sql.delta.interlock.judging.{GovernedCommit, OwnCommits, ReadRows}
import org.apache.spark.sql.delta.interlock.log.{Author, LogListing}
import org.apache.spark.sql.delta.interlock.table.{PhysicalNames, PropertyRules, ReadTable}
import org.apache.spark.sql.delta.stats.DeltaScan
import org.apache.spark.sql.delta.util.TransactionHelper
import org.apache.spark.sql.delta.{CurrentTransactionInfo => Info, _}
import org.apache.spark.sql.{Dataset, SparkSession}

/** A Delta transaction that commits under the policy of its table and through the queue of its
  * coordinator. For a table with neither it behaves as Delta's own.
  *
  * From statement to `N.json`: the statement reads (`filesForScan`) and writes its files
  * (`writeFiles`), `commitImpl` decides its class, Delta prepares the actions, and [[CommitLoop]]
  * judges them against each winner and makes the commit. Commits that no policy judges, such as
  * the one that sets the first policy, go through Delta's own loop.
  */
class InterlockTransaction(log: DeltaLog, catalogTable: Option[CatalogTable], snapshot: Snapshot)
    extends OptimisticTransaction(log, catalogTable, snapshot) {
  private val table = new ReadTable(log, catalogTable, snapshot)
  private[interlock] val statement = new Statement(spark, table, txnId, txnStartTimeNs, ofBlock)
  protected lazy val rules = new PropertyRules(spark, table)

  /** The other tables as it has read them. */
  private[interlock] def otherSnapshots: Seq[Snapshot] = readSnapshots.values.asScala.toSeq

  /** The id of the atomic block whose commit it is. */
  protected def ofBlock: Option[String] = None

  /** What the statement reads, beyond what Delta tracks. */
  val reads = new StatementReads

  private[interlock] val writes = new StatementWrites(this, statement, rules)
  private lazy val winners = new Winners(table, warns = send.nonEmpty)
  private lazy val audit = new CommitAudit(statement, winners, metadata, writes.marksRows)
  private lazy val failures = new Failures(statement, rules, audit, metadata, governed)

  /** The way into the queue of the table's coordinator, if it has one. */
  private lazy val send: Option[Send] =
    if (rules.hasTwoCoordinators) None
    else {
      val (read, id) =
        if (table.isNew) (metadata, "") else (snapshot.metadata, snapshot.metadata.id)
      Coordinators.queue(spark, log, read.configuration, id).map(queue =>
        new Send(
          statement,
          queue,
          audit,
          super.incrementallyDeriveChecksum(_, _),
          convert,
          whenMade = () => executionObserver.beginBackfill()
        )
      )
    }

  /** The commit, if a policy governs it. */
  private[interlock] var governed: Option[GovernedCommit] = None

  /** The reads of the statement's plans, once they count. */
  private var taken = TakenReads.none

  /** The commit, once [[CommitLoop]] has made it. */
  private var made: Option[Made] = None

  // ---- what the statement reads ----

  /** Does nothing: Delta has done it when it created the transaction that this one replaces. */
  override protected def maybeBackfillOnConstruction(): Unit = ()

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

  override def filterFiles(filters: Seq[Expression], keepNumRecords: Boolean): Seq[AddFile] = {
    if (rules.policy.exists(_.judgesReads))
      ReplacedRows.of(spark, filters).foreach(reads.nextScanIsFor(_))
    val files = super.filterFiles(reads.confined(filters), keepNumRecords)
    if (writes.beginWithScan) writes.begin().foreach(endIfLost)
    files
  }

  override def filesForScan(filters: Seq[Expression], keepNumRecords: Boolean): DeltaScan = {
    val scan = super.filesForScan(filters, keepNumRecords)
    reads.planned(scan, predicates.lastOption)
    scan
  }

  private def predicates = readPredicates.toArray(Array.empty[DeltaTableReadPredicate]).toVector

  /** The transaction's reads, without actions.
    *
    * @param info
    *   before there is one, Delta's checks need some time of the commit
    */
  protected def readsOf(
      op: Operation,
      info: CommitInfo = CommitInfo.empty().copy(inCommitTimestamp = Some(0L))
  ): Info = Info(
    txnId = txnId,
    readPredicates = predicates,
    readFiles = readFiles.toArray(Array.empty[AddFile]).toSet,
    readWholeTable = readTheWholeTable,
    readAppIds = readTxn.toSet,
    metadata = metadata,
    protocol = protocol,
    actions = Nil,
    readSnapshot = snapshot,
    commitInfo = Some(info),
    readRowIdHighWatermark =
      RowId.extractHighWatermark(snapshot).getOrElse(RowId.MISSING_HIGH_WATER_MARK),
    catalogTable = catalogTable,
    domainMetadata = Nil,
    op = op
  )

  // ---- what it writes ----

  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    reads.add(PlanReads.before(data.queryExecution, snapshot))
    writes.begin().foreach(endIfLost)
    writes.run(data, options, isOptimize, metadata)(
      super.writeFiles(_, options, isOptimize, constraints)
    )
  }

  /** Ends a statement that has lost already, before it writes. */
  protected def endIfLost(change: Unwritten): Unit =
    // A numbered batch that another driver has written meanwhile has not lost.
    for (policy <- rules.policy; own <- send if readTxn.isEmpty) {
      val commit = governedBy(policy, change.op, Nil)
      val level = rules.isolation(
        if (change.changesData) Serializable else super.getIsolationLevelToUse(Nil, change.op),
        Some(commit),
        metadata
      )
      val early = new EarlyVerdict(statement, commit, own, change.marksRows)
      reads.uncounted(early.conflict(readsOf(change.op), level)).foreach { lost =>
        governed = Some(commit)
        val failures = new Failures(statement, rules, early.audit, metadata, governed)
        committing(change.op, failures.raised(change.op, Nil, _))(throw lost)
      }
    }

  // ---- table properties ----

  override def updateMetadataForNewTable(metadata: Metadata): Unit = {
    rules.replaces()
    super.updateMetadataForNewTable(metadata)
  }

  override protected def updateMetadataInternal(
      proposed: Metadata,
      withoutDefaults: Boolean
  ): Unit = super.updateMetadataInternal(
    PhysicalNames.stable(rules.completed(proposed), snapshot.metadata),
    withoutDefaults
  )

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

  override protected def getAssertDeletionVectorWellFormedFunc(
      session: SparkSession,
      op: Operation
  ): Action => Unit =
    rules.wellFormed(super.getAssertDeletionVectorWellFormedFunc(session, op), op, metadata)(
      DeletionVectorUtils.deletionVectorsReadable(snapshot, newProtocol, newMetadata)
    )

  // ---- the commit ----

  protected def governedBy(policy: Policy, op: Operation, actions: Seq[Action]): GovernedCommit =
    GovernedCommit(
      policy,
      op,
      actions,
      snapshot,
      spark,
      writes.replacesNull,
      reads.matched,
      isConfined = writes.isConfined && !reads.areUntracked
    )

  override protected def getIsolationLevelToUse(
      actions: Seq[Action],
      op: Operation
  ): IsolationLevel =
    rules.isolation(super.getIsolationLevelToUse(actions, op), governed, metadata)

  override protected def commitImpl(
      actions: Seq[Action],
      op: Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = committing(op, raised(op, actions, _)) {
    governed = rules.policyOf(op, metadata).map(governedBy(_, op, actions))
    if (governed.nonEmpty && isDone(actions, op)) Some(snapshot.version)
    else governed.fold(super.commitImpl(actions, op, canSkipEmptyCommits, tags)) { commit =>
      rules.refuse(commit, actions)
      if (commit.countsReads) takeUpReads(commit, getIsolationLevelToUse(actions, op))
      val said = tags ++ commit.tags ++ ReadRows.tags(op, readPredicates.size)
      try super.commitImpl(Lineage.committed(actions), op, canSkipEmptyCommits, said)
      catch {
        case _: DeltaConcurrentModificationException
            if canSkipEmptyCommits && !statement.isMade && table.hasNow(batches(actions)) =>
          statement.staged.deleteAll(actions)
          None
      }
    }
  }

  protected def raised(op: Operation, actions: Seq[Action], failed: Throwable): Throwable =
    failures.raised(op, actions, failed)

  /** The batches of a job that numbers them (`txnAppId`, `txnVersion`). One that another driver has
    * committed meanwhile is done, as it is for Delta if it has read that commit.
    */
  private def batches(actions: Seq[Action]): Seq[SetTransaction] =
    actions.collect { case batch: SetTransaction => batch }

  /** Whether a CLUSTER BY names the columns by which the table is clustered already. */
  private def isDone(actions: Seq[Action], op: Operation): Boolean = op match {
    case _: DeltaOperations.ClusterBy =>
      newMetadata.isEmpty && actions.forall(snapshot.domainMetadata.contains)
    case _ => false
  }

  /** Counts the reads of the statement's plans among those of the transaction. */
  protected def takeUpReads(commit: GovernedCommit, level: IsolationLevel): Unit = {
    val planned = new PlannedReads(statement, commit, readsOf(DeltaOperations.ManualUpdate), audit)
    taken = planned.takeUp(reads.ofPlans, level)
    taken.predicates.foreach(readPredicates.add)
    trackFilesRead(taken.files)
    if (taken.areOfWholeTable) readWholeTable()
  }

  /** The loop for a commit to a table that had its policy already when it was read. */
  private def loop(info: Info, level: IsolationLevel): Option[CommitLoop] =
    for (commit <- governed; own <- send if rules.hadPolicy) yield {
      val first = Attempt(getFirstAttemptVersion, info, level, skipped = taken.skipped)
      new CommitLoop(statement, commit, first, winners, audit, own)
    }

  protected def make(loop: CommitLoop): Made = loop.run()
  protected def check(loop: CommitLoop): Unit = loop.check()

  override protected def doCommitRetryIteratively(
      version: Long,
      info: Info,
      level: IsolationLevel
  ): (Long, Snapshot, Info) = {
    send.foreach(own => ForeignWriters.look(table.name, snapshot, own.queue))
    loop(info, level).fold(super.doCommitRetryIteratively(version, info, level)) { loop =>
      val done = make(loop)
      made = Some(done)
      preCommitLogSegment = done.segment
      val (at, rebased) = (done.attempt.next, done.attempt.info)
      val (after, _) = doCommit(at, rebased, 0, level, new AMTWriterManager(snapshot, info.op))
      (at, after, rebased)
    }
  }

  private def convert(version: Long, info: Info): Unit = catalogTable.foreach(table =>
    super.generateIcebergAndUpdateCurrentTransactionInfo(spark, this, version, info, table): Unit
  )

  /** Done before the commit was made, if [[CommitLoop]] has made it. */
  @nowarn("cat=lint-inaccessible") // Delta's method is public, and its parameter is not
  override def generateIcebergAndUpdateCurrentTransactionInfo(
      session: SparkSession,
      transaction: TransactionHelper,
      version: Long,
      info: Info,
      table: CatalogTable
  ): (Info, Boolean) =
    if (made.nonEmpty) (info, false)
    else
      super.generateIcebergAndUpdateCurrentTransactionInfo(
        session,
        transaction,
        version,
        info,
        table
      )

  /** What [[CommitLoop]] has made is there already; Delta then looks after the rest. */
  override protected def writeCommitFile(
      version: Long,
      lines: Iterator[String],
      info: Info
  ): (Option[VersionChecksum], Commit, Info) = made.fold {
    rules.refuseIfGone(metadata)
    governed.foreach(_ => audit.sent(info))
    def written = super.writeCommitFile(version, lines, info)
    val commit = if (send.isEmpty) failures.alone(version)(written) else written
    statement.isMade = true
    commit
  }(_.written)

  /** A commit without actions makes a version if it overwrites; others are only judged. */
  override protected def skipRecordingEmptyCommitAllowed(level: IsolationLevel): Boolean =
    governed.map(commit => commit.operationClass -> commit.operation) match {
      case None | Some((OperationClass.Metadata, _)) => super.skipRecordingEmptyCommitAllowed(level)
      case Some((OperationClass.Overwrite, _)) => false
      case Some((_, op)) =>
        judgeWithoutActions(readsOf(op, commitInfo), level)
        true
    }

  protected def judgeWithoutActions(reads: Info, level: IsolationLevel): Unit =
    loop(reads, level) match {
      case Some(loop) => check(loop)
      case None => checkForConflicts(getFirstAttemptVersion, reads, 0, level): Unit
    }

  override def commitLarge(
      session: SparkSession,
      actions: Iterator[Action],
      protocol: Option[Protocol],
      op: Operation,
      context: Map[String, String],
      metrics: Map[String, String]
  ): (Long, Snapshot) = committing(op, failures.raisedByLarge(op, _)) {
    rules.refuseOthers()
    val merged = protocol.map(rules.merged(_, newProtocol, metadata))
    // Delta asks for the actions when it writes them.
    val looked = Iterator.empty[Action] ++ { rules.refuseIfGone(metadata); actions }
    val policy = rules.policyOf(op, metadata)
    for (rule <- policy; own <- send; again <- ClaimingStatement.current) {
      val first = Attempt(getFirstAttemptVersion, readsOf(op), Serializable)
      again.tries(new ClaimGate(statement, own.queue, governedBy(rule, op, Nil), first))
    }
    // Large commits have no tags, so the user is recorded in the commit's context.
    val user = policy.map(_ => "user" -> Author.of(session).user)
    def large = super.commitLarge(session, looked, merged, op, context ++ user, metrics)
    val committed = if (send.isEmpty) failures.alone(getFirstAttemptVersion)(large) else large
    OwnCommits.add(txnId)
    committed
  }

  private def committing[A](op: Operation, raised: Throwable => Throwable)(commit: => A): A =
    try {
      newMetadata = newMetadata.map(rules.kept(op, _))
      newMetadata.foreach(rules.refuseTwoCoordinators(_, protocol))
      commit
    } catch {
      case failed: Throwable if rules.isCoordinated(metadata) =>
        throw Interrupt.setAside(raised(failed))
    } finally RunningTransactions.end(this)

  // ---- the coordinator ----

  /** The queue orders the commits; Delta's lock would only keep them from being sent together. */
  override private[delta] def isCommitLockEnabled: Boolean =
    send.isEmpty && super.isCommitLockEnabled

  // Delta evaluates this first when it commits, and uses any client as a coordinator.
  override private[delta] lazy val readSnapshotTableCommitCoordinatorClientOpt
      : Option[TableCommitCoordinatorClient] = send.map(_.client).orElse(
    if (!snapshot.isCatalogOwned) snapshot.getTableCommitCoordinatorForWrites
    else CatalogOwnedTableUtils
      .populateTableCommitCoordinatorFromCatalog(spark, catalogTable, snapshot)
  )

  override protected def getConflictingVersions(previous: Long): Seq[FileStatus] =
    LogListing.complete(super.getConflictingVersions(previous))

  override protected def incrementallyDeriveChecksum(
      version: Long,
      info: Info
  ): Option[VersionChecksum] = send.filter(_ => snapshot.version != version - 1)
    .fold(super.incrementallyDeriveChecksum(version, info))(
      _.checksum(version, info, preCommitLogSegment)
    )

  // ---- after the commit ----

  /** Delta would replay the log to write one; `BackgroundCheckpoints` writes those that are due. */
  override protected def isCheckpointNeeded(version: Long, after: Snapshot): Boolean =
    send.isEmpty && super.isCheckpointNeeded(version, after)

  override protected def runPostCommitHooks(committed: CommittedTransaction): Unit = {
    OwnCommits.add(txnId)
    governed.foreach(_ => audit.committed(committed.committedVersion))
    val hooks = committed.postCommitHooks
    val ours =
      if (send.isEmpty) hooks else AfterCommit.hooksFor(hooks, made.exists(_.checksum.nonEmpty))
    super.runPostCommitHooks(committed.copy(postCommitHooks = ours))
  }

  override protected def updateAndCheckpoint(
      session: SparkSession,
      log: DeltaLog,
      commitSize: Int,
      version: Long,
      commit: Commit,
      txn: String
  ): Snapshot = {
    statement.isMade = true
    if (send.nonEmpty) AfterCommit.snapshot(statement, version, commit, preCommitLogSegment)
    else super.updateAndCheckpoint(session, log, commitSize, version, commit, txn)
  }
}
