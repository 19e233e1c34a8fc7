package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules._
import io.interlock.spark.commits.Operations
import io.interlock.spark.errors.Conflicts
import io.interlock.spark.properties.{OtherCoordinator, SessionPolicies}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.interlock.rebase.{MovedReads, ReplaceLive, RowRebase, RowVectors}

/** Delta's conflict check, with its three checks on data files replaced by a policy's decision.
  *
  * Protocol, metadata, application transactions, domains, row ids and timestamps are still checked
  * by Delta, first; but see [[CommutingMetadata]].
  *
  * @param own
  *   the metadata with which the attempt came to its commit
  */
private[interlock] class InterlockConflictChecker(
    spark: SparkSession,
    info: CurrentTransactionInfo,
    winner: WinningCommitSummary,
    level: IsolationLevel,
    attempt: GovernedCommit,
    own: Metadata,
    vectors: RowVectors,
    table: String
) extends ConflictChecker(spark, info, winner, level) {
  private val leftToDelta = Ruling(Verdict.ByFiles, None)

  private lazy val judgedWinner = attempt.asWinner(winner)
  private lazy val parts = attempt.asAttempts(currentTransactionInfo).map(part =>
    new Part(
      part,
      if (attempt.continues(winner)) leftToDelta
      else Judge.judge(attempt.policy, judgedWinner, part)
    )
  )

  /** The winner, if a cell of the policy let the attempt pass it. */
  def passed: Option[PassedWinner] =
    parts.flatMap(part => part.ruling.cell.map(part -> _)).headOption.map { case (part, cell) =>
      PassedWinner(winner.commitVersion, cell.label, part.ruling.verdict, part.scopeText)
    }

  /** Fails if the attempt's predicates select rows of this winner, a blind append that it had
    * skipped, now that a later version has read these rows.
    */
  def failIfReadBy(version: Long): Unit =
    if (attempt.policy.judgesReads)
      parts.head.failIf(overlaps.inAddedRows.map(found =>
        found.copy(why = s"${found.why} and that version $version has read")
      ))

  /** Also fails if something else orders the table's commits from the winner on. */
  override protected def checkProtocolCompatibility(): Unit = {
    super.checkProtocolCompatibility()
    val (metadata, protocol) = (currentTransactionInfo.metadata, currentTransactionInfo.protocol)
    val properties = winner.metadataUpdates.headOption.getOrElse(metadata).configuration
    if (OtherCoordinator.of(properties, protocol.readerAndWriterFeatureNames).nonEmpty)
      throw DeltaErrors.protocolChangedException(winner.commitInfo)
  }

  override protected def attemptToResolveMetadataConflicts(): Unit =
    winner.metadataUpdates.headOption.filter(_ => attempt.policy.judgesReads)
      .flatMap(CommutingMetadata.rebased(currentTransactionInfo, _, own))
      .fold(super.attemptToResolveMetadataConflicts())(currentTransactionInfo = _)

  override protected def checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn(): Unit =
    if (byDelta) super.checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn()
    else parts.foreach(_.check())

  override protected def checkForDeletedFilesAgainstCurrentTxnReadFiles(): Unit =
    if (byDelta) super.checkForDeletedFilesAgainstCurrentTxnReadFiles()

  /** The last of Delta's checks; after it the attempt's reads follow the rows that the winner
    * moved.
    */
  override protected def checkForDeletedFilesAgainstCurrentTxnDeletedFiles(): Unit = {
    if (byDelta) super.checkForDeletedFilesAgainstCurrentTxnDeletedFiles()
    if (judgedWinner.operationClass != OperationClass.Overwrite)
      currentTransactionInfo = MovedReads.follow(currentTransactionInfo, winner)
  }

  /** Whether policies have no cell for the two: one of them changes no data, or both are of one
    * OPTIMIZE.
    */
  private def byDelta: Boolean = parts.head.ruling == leftToDelta

  private def overlaps = new OverlapFinder(
    spark,
    currentTransactionInfo,
    winner,
    level,
    attempt,
    vectors
  )

  /** One part of the attempt, with the policy's ruling. */
  final private class Part(judged: Attempt, val ruling: Ruling) {

    def check(): Unit = ruling.verdict match {
      case Verdict.Fail => fail(conflict())
      case Verdict.AsIs => ()
      case Verdict.ReplaceLive =>
        rebase(reason => conflict(unproved = Some(reason)))(
          ReplaceLive.rebase(
            currentTransactionInfo,
            winner,
            attempt.replaced(currentTransactionInfo),
            attempt.partitionOf(_, winner)
          )
        )
      case Verdict.ByFiles => failIf(overlaps.inFiles)
      case Verdict.ByRows =>
        val unrebased = overlaps
        rebase(reason => conflict(overlap = Some(unrebased.sameRows(reason))))(rebasedRows)
        failIf(unrebased.inReads)
      case _ => rebase(reason => conflict(unproved = Some(reason)))(rebasedRows)
    }

    def failIf(found: Option[Overlap]): Unit =
      found.foreach(overlap => fail(conflict(overlap = Some(overlap))))

    private def rebasedRows =
      new RowRebase(vectors, currentTransactionInfo, winner)(ruling.verdict)

    private def rebase(conflict: String => Conflict)(
        rebased: Either[String, CurrentTransactionInfo]
    ): Unit =
      currentTransactionInfo = rebased.fold(reason => fail(conflict(reason)), identity)

    private def fail(conflict: Conflict): Nothing =
      throw Conflicts.raised(conflict, SessionPolicies.readable)

    /** @param unproved
      *   why a rebase that the policy permits cannot be proved safe
      */
    private def conflict(
        unproved: Option[String] = None,
        overlap: Option[Overlap] = None
    ): Conflict = Conflict(
      kind = overlap.fold(kind)(_.kind),
      policy = attempt.policy.name,
      rule = ruling.cell.fold("no cell")(_.label),
      verdict = ruling.verdict,
      winnerClass = Some(judgedWinner.operationClass),
      operationClass = judged.operationClass,
      winnerOperation =
        winner.commitInfo.flatMap(Operations.name).orElse(Some("an unnamed operation")),
      operation = Operations.name(attempt.operation),
      readVersion = info.readSnapshot.version,
      winnerVersion = winner.commitVersion,
      scope = scopeText,
      table = table,
      txnId = info.txnId,
      why = Conflict.why(judgedWinner.operationClass, judged.operationClass, unproved, overlap),
      overlap = overlap
    )

    private def kind = ConflictKind.of(
      judgedWinner.operationClass,
      judged.operationClass,
      winnerAddedData = winner.addedFiles.exists(_.dataChange),
      winnerRemoved = winner.removedFiles.nonEmpty,
      overlaps.onlyRemove
    )

    /** A few of the partitions in which they overlap, or the whole table. */
    def scopeText: String = judgedWinner.changed match {
      case ChangedScope.Partitions(values) =>
        ChangedScope.few(values.filter(judged.scope.covers))
      case _ => "the whole table"
    }
  }
}
