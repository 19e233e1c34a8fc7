package org.apache.spark.sql.delta.interlock.transaction

import io.delta.storage.commit.Commit
import io.interlock.coordinator.Interrupt
import io.interlock.rules.OperationClass
import io.interlock.spark.commits.{Coordinators, ForeignWriters}
import io.interlock.spark.compaction.Lineage
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.coordinatedcommits._
import org.apache.spark.sql.delta.interlock.judging.{OwnCommits, ReadRows}
import org.apache.spark.sql.delta.interlock.log.{Committer, LogListing}
import org.apache.spark.sql.delta.interlock.transaction.CommitState.Made
import org.apache.spark.sql.delta.{CurrentTransactionInfo => Info, _}

/** A Delta transaction that commits under the policy of its table and through the queue of its
  * coordinator. For a table with neither it behaves as Delta's own.
  *
  * From statement to `N.json`: the statement writes its files (`writeFiles`), `commitImpl` decides
  * its class, Delta prepares the actions, [[JudgedCommit]] waits for its turn, and
  * [[JudgingRounds]] judges it against each winner in order.
  */
class InterlockTransaction(log: DeltaLog, catalogTable: Option[CatalogTable], snapshot: Snapshot)
    extends OpenTransaction(log, catalogTable, snapshot) {
  private lazy val coordinated: Option[CoordinatedCommit] = {
    val (read, id) = if (table.isNew) (metadata, "") else (snapshot.metadata, snapshot.metadata.id)
    if (rules.hasTwoCoordinators) None
    else
      Coordinators.queue(spark, log, read.configuration, id).map(new CoordinatedCommit(this, _))
  }
  private lazy val winners = new WinnerReader(table, coordinated.nonEmpty)
  private lazy val audit = new CommitAudit(this, winners)
  private lazy val failures = new CommitFailures(this, rules, audit)

  /** The commit, if the table had its policy when it was read, so that its winners are judged. */
  private var judged: Option[JudgedCommit] = None

  // ---- before the commit ----

  override protected def endIfLost(statement: Unwritten): Unit =
    for (policy <- rules.policy; own <- coordinated) {
      val commit = governedBy(policy, statement.op, Nil)
      def listed = table.listedSince(preCommitLogSegment, own.client)
      val early = new EarlyVerdict(this, statement, commit, own.queue, resolveAgainstWinningCommit)
      early.conflict(listed).foreach { lost =>
        governed = Some(commit)
        val failures = new CommitFailures(this, rules, early.audit)
        committing(statement.op, failures.raised(statement.op, Nil, _))(throw lost)
      }
    }

  // ---- commit ----

  override protected def commitImpl(
      actions: Seq[Action],
      op: Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = committing(op, failures.raised(op, actions, _)) {
    governed = rules.policyOf(op, metadata).map(governedBy(_, op, actions))
    governed.fold(super.commitImpl(actions, op, canSkipEmptyCommits, tags)) { commit =>
      rules.refuse(commit, actions)
      val rounds = new JudgingRounds(this, commit, winners, audit, resolveAgainstWinningCommit)
      if (commit.countsReads) new PlannedReads(this, commit, rounds, audit)
        .takeUp(getIsolationLevelToUse(actions, op))
      judged = coordinated.filter(_ => rules.hadPolicy)
        .map(own => new JudgedCommit(this, own.queue, commit, rounds, winners))
      val said = tags ++ commit.tags ++ ReadRows.tags(op, readPredicates.size)
      super.commitImpl(Lineage.committed(actions), op, canSkipEmptyCommits, said)
    }
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
    val looked = Iterator.empty[Action] ++ { refuseAnother(); actions }
    // The one place for it in such a commit, which has no tags.
    val user = rules.policyOf(op, metadata).map(_ => "user" -> Committer.of(session).user)
    def large = super.commitLarge(session, looked, merged, op, context ++ user, metrics)
    val made = if (coordinated.isEmpty) failures.alone(getFirstAttemptVersion)(large) else large
    OwnCommits.add(txnId)
    made
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

  /** A commit without actions makes a version if it overwrites; others are only judged. */
  override protected def skipRecordingEmptyCommitAllowed(level: IsolationLevel): Boolean =
    governed.map(commit => commit.operationClass -> commit.operation) match {
      case None | Some((OperationClass.Metadata, _)) => super.skipRecordingEmptyCommitAllowed(level)
      case Some((OperationClass.Overwrite, _)) => false
      case Some((_, op)) =>
        val found = withoutActions(op)
        judged.foreach(_.tried(found, level))
        checkForConflicts(getFirstAttemptVersion, found, attemptNumber = 0, level)
        true
    }

  // ---- the queue ----

  /** The queue orders the commits; Delta's lock would only keep them from being sent together. */
  override private[delta] def isCommitLockEnabled: Boolean =
    coordinated.isEmpty && super.isCommitLockEnabled

  // Delta evaluates this first when it commits, and uses any client as a coordinator.
  override private[delta] lazy val readSnapshotTableCommitCoordinatorClientOpt
      : Option[TableCommitCoordinatorClient] = coordinated.map(_.client).orElse(
    if (!snapshot.isCatalogOwned) snapshot.getTableCommitCoordinatorForWrites
    else CatalogOwnedTableUtils
      .populateTableCommitCoordinatorFromCatalog(spark, catalogTable, snapshot)
  )

  override protected def doCommitRetryIteratively(
      version: Long,
      info: Info,
      level: IsolationLevel
  ): (Long, Snapshot, Info) = {
    def send(from: Long, as: Info) = super.doCommitRetryIteratively(from, as, level)
    coordinated.foreach(own => ForeignWriters.look(table.name, snapshot, own.queue))
    judged.fold(send(version, info))(_.commit(version, info, level)(send))
  }

  override protected def getConflictingVersions(previous: Long): Seq[FileStatus] = {
    def listed = LogListing.complete(super.getConflictingVersions(previous))
    judged.filter(_.isCommitting).fold(listed)(_.missedSince(previous)(listed))
  }

  override protected def resolveConflicts(
      info: Info,
      first: Long,
      last: Long,
      files: Seq[FileStatus],
      level: IsolationLevel
  ): Info = judged.fold(super.resolveConflicts(info, first, last, files, level))(
    _.resolve(info, first, files, level)
  )

  override protected def writeCommitFile(
      version: Long,
      lines: Iterator[String],
      info: Info
  ): (Option[VersionChecksum], Commit, Info) = {
    refuseAnother()
    audit.sent(info)
    def alone = super.writeCommitFile(version, lines, info)
    val queued = coordinated.filter(_ => judged.exists(_.isCommitting))
    val made = queued.fold(if (coordinated.isEmpty) failures.alone(version)(alone) else alone)(
      own =>
        own.write(version, info)(incrementallyDeriveChecksum(version, info))(
          writeCommitFileImpl(version, lines, own.client, info)
        )
    )
    state = Made
    made
  }

  override protected def incrementallyDeriveChecksum(
      version: Long,
      info: Info
  ): Option[VersionChecksum] = coordinated.filter(_ => snapshot.version != version - 1)
    .fold(super.incrementallyDeriveChecksum(version, info))(_.checksum(version, info))

  /** Delta would replay the log to write one; [[BackgroundCheckpoints]] writes those that are due. */
  override protected def isCheckpointNeeded(version: Long, after: Snapshot): Boolean =
    coordinated.isEmpty && super.isCheckpointNeeded(version, after)

  override protected def runPostCommitHooks(committed: CommittedTransaction): Unit = {
    OwnCommits.add(txnId)
    governed.foreach(_ => audit.committed(committed.committedVersion))
    super.runPostCommitHooks(coordinated.fold(committed)(own =>
      committed.copy(postCommitHooks = own.hooks(committed.postCommitHooks))
    ))
  }

  override protected def updateAndCheckpoint(
      session: SparkSession,
      log: DeltaLog,
      commitSize: Int,
      version: Long,
      commit: Commit,
      txn: String
  ): Snapshot = {
    state = Made
    def deltas = super.updateAndCheckpoint(session, log, commitSize, version, commit, txn)
    coordinated.fold(deltas)(_.after(version, commit, catalogTable))
  }
}
