package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules._
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.errors.Conflicts
import io.interlock.spark.properties.{OtherCoordinator, SessionPolicies}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.RowId.RowTrackingMetadataDomain
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{DomainMetadata, Metadata, Protocol}
import org.apache.spark.sql.delta.clustering.ClusteringMetadataDomain
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
  import Conflict.WholeTable

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
        found.copy(did = s"${found.did}, and version $version has read that")
      ))

  override protected def checkConflicts(): CurrentTransactionInfo = {
    if (attempt.policy.judgesReads) currentTransactionInfo = withoutEqual(currentTransactionInfo)
    val behind = super.checkConflicts()
    checkClustering(behind)
    behind
  }

  /** Fails if the attempt takes away a column by which the winner clustered the table, or partitions
    * the table: what clusters it is not in its metadata.
    */
  private def checkClustering(behind: CurrentTransactionInfo): Unit =
    if (behind.metadataChanged && !replacesTable) for {
      ClusteringMetadataDomain(clustering, false) <- winner.actions
      by = clustering.clusteringColumns if by.nonEmpty
    } {
      val after = behind.metadata
      if (after.partitionColumns.nonEmpty)
        throw changed("clustered the table, and this job partitions it")
      val there = DeltaColumnMapping.getPhysicalNameFieldMap(after.schema)
      if (!by.forall(there.contains)) {
        val before = DeltaColumnMapping.getPhysicalNameFieldMap(info.readSnapshot.schema)
        val gone = by.filterNot(there.contains).map(path => before.get(path).fold("")(_.name))
        throw changed(s"clustered the table by ${gone.mkString(", ")}, and this job drops that")
      }
    }

  /** Two equal upgrades are one. Also fails if something else orders the table's commits from the
    * winner on.
    */
  override protected def checkProtocolCompatibility(): Unit = {
    winner.protocol.filter(isOwnUpgrade).fold(super.checkProtocolCompatibility()) { upgrade =>
      currentTransactionInfo = currentTransactionInfo.copy(
        actions = currentTransactionInfo.actions.filterNot(_ == upgrade)
      )
    }
    val (metadata, protocol) = (currentTransactionInfo.metadata, currentTransactionInfo.protocol)
    val properties = winner.metadataUpdates.headOption.getOrElse(metadata).configuration
    if (OtherCoordinator.of(properties, protocol.readerAndWriterFeatureNames).nonEmpty)
      throw DeltaErrors.protocolChangedException(winner.commitInfo)
  }

  private def isOwnUpgrade(protocol: Protocol) =
    attempt.policy.judgesReads && currentTransactionInfo.actions.contains(protocol) &&
      !TableFeature.isProtocolRemovingFeatures(protocol, info.readSnapshot.protocol)

  override protected def attemptToResolveMetadataConflicts(): Unit =
    if (winner.metadataUpdates.isEmpty || !attempt.policy.judgesReads)
      super.attemptToResolveMetadataConflicts()
    else
      new CommutingMetadata(info.readSnapshot.metadata, winner.metadataUpdates.head, own)
        .rebased(currentTransactionInfo).fold(leaveToDelta, currentTransactionInfo = _)

  /** Delta lets jobs that write data pass some changes of its features. */
  private def leaveToDelta(did: String): Unit =
    try super.attemptToResolveMetadataConflicts()
    catch { case _: MetadataChangedException => throw changed(did) }

  /** Two equal settings of a domain, such as the clustering columns, are one, unless the attempt
    * replaces the table.
    */
  private def withoutEqual(info: CurrentTransactionInfo): CurrentTransactionInfo = {
    val set = info.actions.collect {
      case domain: DomainMetadata if !RowTrackingMetadataDomain.isSameDomain(domain) => domain
    }
    val other = winner.actions.collectFirst {
      case theirs: DomainMetadata
          if set.exists(own => own.domain == theirs.domain && (replacesTable || own != theirs)) =>
        theirs.domain
    }
    other.foreach(domain => throw changed(s"changed $domain, and this job in another way"))
    info.copy(actions = info.actions.filterNot(set.filter(winner.actions.contains).contains))
  }

  private def replacesTable = attempt.operation.isInstanceOf[DeltaOperations.ReplaceTable]

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

  private def changed(did: String) = raised(lost(ConflictKind.MetadataChanged, did))

  private def raised(conflict: Conflict) = Conflicts.raised(conflict, SessionPolicies.readable)

  /** @param did
    *   what the winner did, as a clause to follow its name
    */
  private def lost(kind: ConflictKind, did: String): Conflict = {
    val told = CommitTags.winner(winner.commitVersion, winner.commitInfo)
    val earlier = told.copy(
      operation = told.operation.orElse(Some("an unnamed operation")),
      operationClass = Some(judgedWinner.operationClass)
    )
    Conflict(
      kind,
      attempt.policy.name,
      Operations.name(attempt.operation),
      attempt.operationClass,
      readVersion = info.readSnapshot.version,
      table,
      info.txnId,
      winner = Some(earlier),
      why = s"$earlier $did"
    )
  }

  /** One part of the attempt, with the policy's ruling. */
  final private class Part(judged: Attempt, val ruling: Ruling) {

    def check(): Unit = ruling.verdict match {
      case Verdict.Fail =>
        val where = if (scopeText == WholeTable) "the table" else scopeText
        val did =
          if (judgedWinner.operationClass == OperationClass.Mutate) "changed rows" else kind.did
        fail(Clash(kind, s"$did in $where"))
      case Verdict.AsIs => ()
      case Verdict.ReplaceLive =>
        val info = currentTransactionInfo
        val replaced = attempt.replaced(info)
        rebase(ReplaceLive.rebase(info, winner, replaced, attempt.partitionOf(_, winner)))(unproved)
      case Verdict.ByFiles => failIf(overlaps.inFiles)
      case Verdict.ByRows =>
        val unrebased = overlaps
        rebase(rebasedRows)(did => fail(unrebased.sameRows(did)))
        failIf(unrebased.inReads)
      case _ => rebase(rebasedRows)(unproved)
    }

    def failIf(found: Option[Clash]): Unit = found.foreach(fail(_))

    private def rebasedRows = {
      val rowIds = new ReadRowIds(spark, currentTransactionInfo.readSnapshot, _, _)
      new RowRebase(vectors, currentTransactionInfo, winner, rowIds)(ruling.verdict)
    }

    private def rebase(rebased: Either[String, CurrentTransactionInfo])(
        fail: String => Nothing
    ): Unit = currentTransactionInfo = rebased.fold(fail, identity)

    /** @param reason
      *   why a rebase that the policy permits cannot be proved safe
      */
    private def unproved(reason: String): Nothing =
      fail(
        Clash(kind, "changed or moved rows of the same files, and they cannot be followed"),
        Some(reason)
      )

    private def fail(clash: Clash, unproved: Option[String] = None): Nothing =
      throw raised(
        lost(clash.kind, clash.did).copy(
          operationClass = judged.operationClass,
          rule = Some(ruling.cell.fold("no cell")(_.label)),
          verdict = Some(ruling.verdict),
          ruling = Some(Conflict.ruling(
            ruling.verdict,
            judgedWinner.operationClass,
            judged.operationClass,
            unproved
          )),
          scope = Some(scopeText),
          overlap = clash.where
        )
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
      case _ => WholeTable
    }
  }
}
