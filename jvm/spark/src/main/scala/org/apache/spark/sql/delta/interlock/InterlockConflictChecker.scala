package org.apache.spark.sql.delta.interlock

import io.interlock.rules._
import io.interlock.spark.errors.Conflicts
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._

/** Delta's conflict check with the three checks on data files decided by a policy.
  *
  * Protocol, metadata, application transactions, domains, row ids and timestamps stay Delta's
  * checks and come first.
  */
private[interlock] class InterlockConflictChecker(
    spark: SparkSession,
    info: CurrentTransactionInfo,
    winner: WinningCommitSummary,
    level: IsolationLevel,
    attempt: PolicedAttempt,
    vectors: RowVectors,
    table: String
) extends ConflictChecker(spark, info, winner, level) {

  private lazy val judged = attempt.asAttempt(currentTransactionInfo)
  private lazy val judgedWinner = attempt.asWinner(winner)
  private lazy val ruling = Judge.judge(attempt.policy, judgedWinner, judged)

  /** The winner, where a cell of the policy let the attempt pass it. */
  def passed: Option[PassedWinner] =
    ruling.cell.map(cell =>
      PassedWinner(winner.commitVersion, cell.label, ruling.verdict, scopeText)
    )

  /** Raises if the attempt would have read rows of this winner, an append that it has passed, and that
    * a later version has read.
    */
  def failIfReadBy(version: Long): Unit =
    if (attempt.policy.judgesReads)
      failIf(meetings.inAddedRows.map(met =>
        met.copy(why = s"${met.why} and that version $version has read")
      ))

  override protected def checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn(): Unit =
    ruling.verdict match {
      case Verdict.Fail => throw Conflicts.byPolicy(conflict())
      case Verdict.AsIs => ()
      case Verdict.ReplaceLive =>
        currentTransactionInfo = ReplaceLive.rebase(currentTransactionInfo, winner, judged.scope)
      case Verdict.ByFiles if byDelta =>
        super.checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn()
      case Verdict.ByFiles => failIf(meetings.inFiles)
      case Verdict.ByRows =>
        val unrebased = meetings
        rebase(reason => conflict(meeting = Some(unrebased.sameRows(reason))))
        failIf(unrebased.inReads)
      case _ => rebase(reason => conflict(unproved = Some(reason)))
    }

  override protected def checkForDeletedFilesAgainstCurrentTxnReadFiles(): Unit =
    if (byDelta) super.checkForDeletedFilesAgainstCurrentTxnReadFiles()

  override protected def checkForDeletedFilesAgainstCurrentTxnDeletedFiles(): Unit =
    if (byDelta) super.checkForDeletedFilesAgainstCurrentTxnDeletedFiles()

  /** Whether one of the two changes no data, which no policy has a cell for. */
  private def byDelta: Boolean = ruling == Ruling(Verdict.ByFiles, None)

  private def meetings = new Meetings(
    spark,
    currentTransactionInfo,
    winner,
    level,
    attempt,
    vectors
  )

  private def failIf(met: Option[Meeting]): Unit =
    met.foreach(meeting => throw Conflicts.byPolicy(conflict(meeting = Some(meeting))))

  private def rebase(conflict: String => Conflict): Unit =
    currentTransactionInfo = new RowRebase(vectors, currentTransactionInfo, winner)(ruling.verdict)
      .fold(reason => throw Conflicts.byPolicy(conflict(reason)), identity)

  /** @param unproved
    *   why a rebase that the policy grants cannot be proved safe
    */
  private def conflict(
      unproved: Option[String] = None,
      meeting: Option[Meeting] = None
  ): Conflict = Conflict(
    kind = meeting.fold(kind)(_.kind),
    policy = attempt.policy.name,
    rule = ruling.cell.fold("no cell")(_.label),
    earlierClass = judgedWinner.operationClass,
    laterClass = attempt.operationClass,
    earlierOperation = winner.commitInfo.fold("an unnamed operation")(_.operation),
    laterOperation = attempt.operation.name,
    readVersion = info.readSnapshot.version,
    winnerVersion = winner.commitVersion,
    scope = scopeText,
    table = table,
    attempt = info.txnId,
    unproved = unproved,
    meeting = meeting
  )

  private def kind = ConflictKind.of(
    judgedWinner.operationClass,
    attempt.operationClass,
    winnerAddedData = winner.addedFiles.exists(_.dataChange),
    winnerRemoved = winner.removedFiles.nonEmpty
  )

  /** The partitions that met, a few of them, or the whole table. */
  private def scopeText: String = judgedWinner.changed match {
    case ChangedScope.Partitions(values) =>
      val met = values.filter(judged.scope.covers).map(partition =>
        partition.toSeq.sorted.map { case (column, value) => s"$column=$value" }.mkString("/")
      )
      met.toSeq.sorted.take(3).mkString("", ", ", if (met.size > 3) ", ..." else "")
    case _ => "the whole table"
  }
}
