package org.apache.spark.sql.delta.interlock

import java.io.FileNotFoundException

import scala.collection.mutable
import scala.util.Try
import scala.util.control.NonFatal

import io.delta.storage.commit.Commit
import io.interlock.coordinator.{CommitUnknownException, CoordinatorException}
import io.interlock.rules.{OperationClass, Policy}
import io.interlock.spark.errors._
import io.interlock.spark.{CoordinatorSettings, Misspelt, PolicyDigest, TableProperties}
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.DeltaOperations.{Operation, UnsetTableProperties}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.commands.DeletionVectorUtils
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.{Dataset, SparkSession}

/** A Delta transaction that commits under the policy of its table, and is Delta's own where the
  * table has none.
  *
  * From statement to `N.json`: the statement writes its files (`writeFiles`), `commitImpl` decides
  * its class, Delta prepares the actions, and if another commit took the version,
  * `judge` judges the attempt against each winner in order.
  */
class InterlockTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot
) extends AuditedTransaction(deltaLog, catalogTable, snapshot) {

  private val vectors = new RowVectors(deltaLog, staged)
  protected var attempt: Option[PolicedAttempt] = None

  /** The policy that the table had when this transaction began to read it. */
  private lazy val policy: Option[Policy] =
    PolicyDigest.enforced(tableName, snapshot.metadata.configuration)

  private def hadPolicy: Boolean = TableProperties.named(snapshot.metadata.configuration).nonEmpty

  /** Refuses a writer that lacks the table's policy or means other rules by its name. */
  private def refuseOtherRules(): Unit = {
    val _ = policy
  }

  /** What reads the table to change it is refused before it writes deletion vectors. */
  override def trackReadPredicates(
      filters: Seq[Expression],
      partitionOnly: Boolean,
      shouldRewriteFilter: Boolean
  ): Unit = {
    refuseOtherRules()
    super.trackReadPredicates(filters, partitionOnly, shouldRewriteFilter)
  }

  /** Whether the statement reads the table in ways that Delta does not track. */
  @volatile private var readsUntracked = false

  /** To be called for such a read; it counts as one of the whole table. */
  def alsoReads(): Unit = readsUntracked = true

  /** The scope of an UPDATE, DELETE or MERGE is what its condition selects, unless the policy judges by
    * what was read.
    */
  private def trackUntracked(current: PolicedAttempt): Unit =
    if (
      readsUntracked &&
      (current.policy.judgesReads || current.operationClass == OperationClass.Append)
    ) readWholeTable()

  // ---- table properties ----

  private var replacing = false

  override def updateMetadataForNewTable(metadata: Metadata): Unit = {
    replacing = snapshot.version >= 0
    super.updateMetadataForNewTable(metadata)
  }

  override protected def updateMetadataInternal(
      proposed: Metadata,
      ignoreDefaultProperties: Boolean
  ): Unit = {
    val table = TableProperties.Table(
      name = tableName,
      properties = snapshot.metadata.configuration,
      exists = snapshot.version >= 0,
      replaced = replacing,
      supports = snapshot.protocol.readerAndWriterFeatureNames
    )
    val default = spark.conf.getOption(TableProperties.DefaultPolicyConf)
    val completed = TableProperties.complete(table, proposed.configuration, default)
    TableProperties.coordinatorOf(completed)
      .filterNot(TableProperties.coordinatorOf(table.properties).contains)
      .foreach(CoordinatorSettings.of(spark, _))
    IdentityColumns.warn(tableName, proposed.schema, table.properties, completed)
    TableIsolation.warn(tableName, table.properties, completed)
    Misspelt.warnOfProperties(completed.keySet -- table.properties.keySet)
    Misspelt.warnOfSettings(spark.conf.getAll.keys)
    super.updateMetadataInternal(proposed.copy(configuration = completed), ignoreDefaultProperties)
  }

  /** CREATE TABLE LIKE sets the source's protocol after the metadata: features must not get lost. */
  override def updateProtocol(protocol: Protocol): Unit =
    super.updateProtocol(mergedProtocol(protocol))

  private def mergedProtocol(protocol: Protocol): Protocol =
    if (TableProperties.named(metadata.configuration).isEmpty) protocol
    else newProtocol.fold(protocol)(protocol.merge(_))

  // ---- commit ----

  /** Whether a dynamic overwrite replaces partitions in which a value is NULL. */
  private var replacesNull = true

  /** Used by all bins of an OPTIMIZE, from several threads. */
  private lazy val rewrite = new OrderedRewrite(this, tableName)

  /** An OPTIMIZE that packs files keeps their order of rows, so that the result says where each row
    * comes from.
    */
  override def writeFiles(
      data: Dataset[_],
      options: Option[DeltaOptions],
      isOptimize: Boolean,
      constraints: Seq[Constraint]
  ): Seq[FileAction] = {
    refuseOtherRules()
    if (options.flatMap(_.useNullIntolerantEqualityWithDPO).contains(true)) replacesNull = false
    def write(rows: Dataset[_]) = super.writeFiles(rows, options, isOptimize, constraints)
    val files = Some(data).filter(_ => isOptimize && policy.nonEmpty) match {
      case Some(OptimizeBin(inputs)) =>
        rewrite.run(Seq(Bins.inOrder(inputs)))(write).flatMap(_.output)
      case _ => write(data)
    }
    if (policy.nonEmpty) staged.written(files)
    files
  }

  override protected def commitImpl(
      actions: Seq[Action],
      op: Operation,
      canSkipEmptyCommits: Boolean,
      tags: Map[String, String]
  ): Option[Long] = {
    unsetProperties(op)
    attempt = policyOfCommit(op).map(PolicedAttempt(_, op, actions, snapshot, spark, replacesNull))
    attempt.fold(
      coordinated(op)(super.commitImpl(actions, op, canSkipEmptyCommits, tags))
    ) { current =>
      try {
        current.refuseUnlessPermitted(tableName)
        TableProperties.refuseDrop(current.policy, droppedFeature(op).toSeq)
        actions.collect { case m: Metadata => TableProperties.refuseIncomplete(m.configuration) }
        trackUntracked(current)
        val said = tags ++ current.tags ++ ReadRows.tags(op, readPredicates.size)
        val version = unlessCleanedUp(current, op) {
          super.commitImpl(Lineage.committed(actions), op, canSkipEmptyCommits, said)
        }
        version.foreach(_ => auditCommit())
        version
      } catch {
        // Hooks that run after the commit may fail as well: then the files are live.
        case afterwards: Throwable if isMade => throw afterwards
        case unknown: CommitUnknownException => throw stateUnknown(op, unknown)
        case refused: InterlockException =>
          staged.deleteAll(actions)
          throw refused
        case refused: CoordinatorException =>
          staged.deleteAll(actions)
          throw InterlockException.ofCoordinator(refused)
        case conflict: DeltaConcurrentModificationException =>
          auditRejection(current.policy, op, conflict)
          afterConflict(current, actions, conflict)
          throw conflict
        case NonFatal(error) if snapshot.version >= 0 && !isSameTable =>
          staged.deleteAll(actions)
          throw InterlockException.tableGone(tableName, op.name, error)
      } finally RunningTransactions.end(this)
    }
  }

  /** Raises a conflict in place of what goes wrong where the log was cleaned up to behind the version
    * that was read.
    */
  private def unlessCleanedUp[A](current: PolicedAttempt, op: Operation)(commit: => A): A =
    try commit
    catch {
      case error @ (_: AssertionError | _: FileNotFoundException | _: IllegalStateException |
          _: CoordinatorException) if !isMade && isCleanedUp && isSameTable =>
        throw Conflicts.commitsGone(
          current.policy,
          current.operationClass,
          op.name,
          tableName,
          snapshot.version,
          txnId,
          error
        )
    }

  /** Whether the log has later versions than the one that was read, but not that one. */
  private def isCleanedUp: Boolean = snapshot.version >= 0 && Try {
    val from = FileNames.listingPrefix(deltaLog.logPath, snapshot.version)
    deltaLog.store.listFrom(from, deltaLog.newDeltaHadoopConf()).map(_.getPath)
      .find(FileNames.isDeltaFile).exists(FileNames.deltaVersion(_) > snapshot.version)
  }.getOrElse(false)

  /** Raises the coordinator's errors as those of Interlock. */
  private def coordinated[A](op: Operation)(commit: => A): A =
    try commit
    catch {
      case unknown: CommitUnknownException => throw stateUnknown(op, unknown)
      case refused: CoordinatorException => throw InterlockException.ofCoordinator(refused)
    }

  private def stateUnknown(op: Operation, unknown: CommitUnknownException) =
    CommitStateUnknownException.of(tableName, op.name, unknown)

  override protected def judgesWinners: Boolean = attempt.nonEmpty && hadPolicy

  private def droppedFeature(op: Operation): Option[String] = op match {
    case drop: DeltaOperations.DropTableFeature => Some(drop.featureName)
    case _ => None
  }

  /** The policy that a commit is judged by: the one the transaction read, or the one it sets. */
  private def policyOfCommit(op: Operation): Option[Policy] = op match {
    case _: DeltaOperations.SetTableProperties | _: UnsetTableProperties =>
      TableProperties.policyOf(metadata.configuration)
    case _ => policy.orElse(TableProperties.policyOf(metadata.configuration))
  }

  /** Interlock's properties survive every change of the metadata; only UNSET ends them. */
  private def unsetProperties(op: Operation): Unit = op match {
    case unset: UnsetTableProperties =>
      newMetadata = newMetadata.map { changed =>
        changed.copy(configuration = TableProperties.unset(changed.configuration, unset.propKeys))
      }
    case _ =>
  }

  /** Deletes what the failed statement staged. Only where files decide may Delta, with the same
    * files, try its own compactions again.
    */
  private def afterConflict(
      current: PolicedAttempt,
      actions: Seq[Action],
      conflict: DeltaConcurrentModificationException
  ): Unit = {
    val isFinal = conflict.isInstanceOf[InterlockConflict] || !current.policy.judgesReads
    if (current.isRetriedByDelta && isFinal) FailedCompaction.remember(conflict)
    if (!current.isRetriedByDelta || isFinal) staged.deleteAll(actions)
  }

  /** A commit without actions: an overwrite makes a version; the others are judged and make none. */
  override protected def skipRecordingEmptyCommitAllowed(level: IsolationLevel): Boolean =
    attempt match {
      case None => super.skipRecordingEmptyCommitAllowed(level)
      case Some(current) if current.operationClass == OperationClass.Overwrite => false
      case Some(current) if current.operationClass == OperationClass.Metadata =>
        super.skipRecordingEmptyCommitAllowed(level)
      case Some(current) =>
        val info = withoutActions(current)
        checkForConflicts(getFirstAttemptVersion, info, attemptNumber = 0, level)
        true
    }

  /** What this transaction read, for a check that is followed by no commit. */
  private def withoutActions(current: PolicedAttempt) = CurrentTransactionInfo(
    txnId = txnId,
    readPredicates = readPredicates.toArray(Array.empty[DeltaTableReadPredicate]).toVector,
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
    op = current.operation
  )

  override protected def getIsolationLevelToUse(
      preparedActions: Seq[Action],
      op: Operation
  ): IsolationLevel =
    (super.getIsolationLevelToUse(preparedActions, op), attempt) match {
      case (stock, Some(current)) if stock != SnapshotIsolation =>
        TableIsolation.of(current.policy, metadata.configuration)
      case (stock, _) => stock
    }

  // ---- conflicts ----

  override protected def judge(
      info: CurrentTransactionInfo,
      firstWinningVersion: Long,
      winners: Seq[FileStatus],
      level: IsolationLevel
  ): CurrentTransactionInfo = audited {
    val current = attempt.get
    val passed = mutable.ArrayBuffer.empty[PassedWinner]
    val resolved =
      try
        winners.foldLeft(info) { (before, file) =>
          def against(winner: WinningCommitSummary) = {
            judging = Some(winner)
            new InterlockConflictChecker(spark, before, winner, level, current, vectors, tableName)
          }
          val winner = this.winner(file)
          refuseIfVacuumed(winner, before)
          resolveAgainstWinningCommit(winner, firstWinningVersion, before).getOrElse {
            val (read, left) = passedAppends.readBy(winner)
            read.foreach(against(_).failIfReadBy(winner.commitVersion))
            passedAppends = left
            val checker = against(winner)
            val after = checker.checkConflictsAndValidateActions()
            passed ++= checker.passed
            after
          }
        }
      finally vectors.finish()
    resolved -> passed.toSeq
  }

  /** A VACUUM that retains less than a job takes deletes files which that job has yet to commit. */
  private def refuseIfVacuumed(winner: WinningCommitSummary, info: CurrentTransactionInfo): Unit =
    if (winner.commitInfo.exists(_.operation == DeltaOperations.VacuumEnd.OPERATION_NAME)) {
      val missing = staged.missing(info.actions)
      if (missing > 0)
        throw InterlockException.filesVacuumed(
          info.op.name,
          tableName,
          winner.commitVersion,
          missing
        )
    }

  override def commitLarge(
      session: SparkSession,
      nonProtocolMetadataActions: Iterator[Action],
      newProtocolOpt: Option[Protocol],
      op: Operation,
      context: Map[String, String],
      metrics: Map[String, String]
  ): (Long, Snapshot) = {
    refuseOtherRules()
    keepPropertiesInRestore(op)
    try
      coordinated(op)(super.commitLarge(
        session,
        nonProtocolMetadataActions,
        newProtocolOpt.map(mergedProtocol),
        op,
        context,
        metrics
      ))
    catch {
      case conflict: ConcurrentWriteException if policy.nonEmpty =>
        val rejected = Conflicts.concurrentWrite(
          policy.get,
          op.name,
          tableName,
          snapshot.version,
          txnId,
          conflict
        )
        auditRejection(policy.get, op, rejected)
        throw rejected
    } finally RunningTransactions.end(this)
  }

  /** A rebase may have marked rows dead on a table that makes no vectors by itself: RESTORE and
    * CLONE bring such files back as they are.
    */
  override protected def getAssertDeletionVectorWellFormedFunc(
      session: SparkSession,
      op: Operation
  ): Action => Unit = {
    val check = super.getAssertDeletionVectorWellFormedFunc(session, op)
    op match {
      case _: DeltaOperations.Restore | _: DeltaOperations.Clone
          if TableProperties.named(metadata.configuration).nonEmpty &&
            DeletionVectorUtils.deletionVectorsReadable(snapshot, newProtocol, newMetadata) =>
        action => if (!action.isInstanceOf[AddFile]) check(action)
      case _ => check
    }
  }

  private def keepPropertiesInRestore(op: Operation): Unit = op match {
    case _: DeltaOperations.Restore =>
      val current = snapshot.metadata.configuration
      newMetadata = newMetadata.map { changed =>
        changed.copy(configuration = TableProperties.restored(current, changed.configuration))
      }
    case _ =>
  }

  override protected def writeCommitFile(
      attemptVersion: Long,
      jsonActions: Iterator[String],
      info: CurrentTransactionInfo
  ): (Option[VersionChecksum], Commit, CurrentTransactionInfo) = {
    if (!isSameTable)
      throw new FileNotFoundException(s"$logPath is no longer the log of $tableName.")
    super.writeCommitFile(attemptVersion, jsonActions, info)
  }

  private val timesForgotten = Coordinators.timesForgotten(deltaLog)

  override protected def isSameTable: Boolean = attempt.isEmpty || snapshot.version < 0 || {
    val arrived = preCommitLogSegment.deltas.reverseIterator.find(_.getLen > 0)
    timesForgotten == Coordinators.timesForgotten(deltaLog) &&
    SameTable.isThere(deltaLog, snapshot, catalogTable, arrived)
  }

  override protected def tableName: String =
    catalogTable.fold(s"delta.`${dataPath.toUri.getPath}`")(_.identifier.unquotedString)
}
