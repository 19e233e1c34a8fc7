package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules._
import io.interlock.spark.commits.{CommitTags, Operations}
import io.interlock.spark.compaction.CompactOperation
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.interlock.log.Author

/** A commit to a table with a policy: its class and scope, and the classes and scopes of its
  * winners.
  *
  * @param replaces
  *   the partition predicate of an overwrite, as the statement wrote it
  * @param replacesDynamically
  *   whether an overwrite replaces the partitions that it writes
  * @param replacesNull
  *   whether partitions with a NULL value are replaced as well
  * @param matched
  *   the scans of the table of which only rows count that match a source
  * @param isConfined
  *   whether the statement reads and writes only where its predicates select
  */
final case class GovernedCommit(
    policy: Policy,
    operation: DeltaOperations.Operation,
    operationClass: OperationClass,
    replaces: Option[String],
    private val replacesDynamically: Boolean,
    private val replacesNull: Boolean,
    matched: Seq[MatchedScan],
    private val isConfined: Boolean,
    private val classifier: Classifier,
    private val predicates: PartitionPredicates,
    private val values: PartitionValues,
    private val snapshot: Snapshot,
    private val user: String
) {

  /** Whether Delta retries the commit after a conflict, as it does with its own compactions. */
  def isRetriedByDelta: Boolean =
    OperationClass.compactions(operationClass) && !operation.isInstanceOf[CompactOperation]

  /** Whether a winner is an earlier commit of the same OPTIMIZE. */
  def continues(winner: WinningCommitSummary): Boolean =
    isRetriedByDelta && OwnCommits.has(winner)

  /** Whether reads count that Delta does not track. The scope of UPDATE, DELETE and MERGE is what
    * their condition selects, unless the policy judges by all reads.
    */
  def countsReads: Boolean = policy.judgesReads || operationClass == OperationClass.Append

  /** The class by which later commits are judged against it. */
  private def winnerClass: OperationClass = operation match {
    case known: ClassifiedOperation => known.winsAs
    case _ => operationClass
  }

  /** The tags of the attempt, for the history. */
  def tags: Map[String, String] =
    Map(
      CommitTags.Class -> winnerClass.name,
      CommitTags.Policy -> policy.name,
      CommitTags.User -> user
    ) ++ replaces.map(CommitTags.Replaced -> _)

  def refuseUnlessPermitted(table: String): Unit =
    if (!policy.permits(operationClass))
      throw InterlockException.operationNotSupported(
        Operations.name(operation),
        table,
        policy.name
      )

  /** The attempt as its policy judges it, see [[Footprint.attempts]].
    *
    * @param info
    *   the transaction after the winners before the one that is judged
    */
  def asAttempts(info: CurrentTransactionInfo): Seq[Attempt] =
    footprint(info).attempts(policy, operationClass)

  /** The scope that an overwrite replaces. */
  def replaced(info: CurrentTransactionInfo): AttemptScope = footprint(info).replaced

  private def footprint(info: CurrentTransactionInfo) = new Footprint(
    isPartitioned,
    touched(info),
    replacement,
    info.readWholeTable,
    info.readPredicates.map(if (policy.judgesReads) selects(_, info) else predicates.ofRead(_))
  )

  private lazy val replacement: Replaces =
    if (replacesDynamically) Replaces.Written(replacesNull)
    else
      replaces.fold[Replaces](Replaces.Everything)(sql => Replaces.Selected(predicates.ofSql(sql)))

  /** The actions of the last call and their partitions: many winners leave the actions unchanged.
    */
  private var last = (Seq.empty[Action], new TouchedPartitions(Set.empty, Set.empty))

  private def touched(info: CurrentTransactionInfo): TouchedPartitions = {
    def partitions(files: Seq[FileAction]) = files.map(values.of(_, info.commitInfo)).toSet
    if (last._1 ne info.actions)
      last = info.actions -> new TouchedPartitions(
        partitions(info.actions.collect { case add: AddFile => add }),
        partitions(info.actions.collect { case remove: RemoveFile => remove })
      )
    last._2
  }

  /** The partitions that a predicate of this attempt selects, by its actions so far. For a dynamic
    * overwrite, Delta itself adds a predicate on the partitions that it writes.
    */
  def selects(read: DeltaTableReadPredicate, info: CurrentTransactionInfo): Partition => Boolean =
    if (read.shouldRewriteFilter) predicates.ofRead(read) else touched(info).written

  def asWinner(winner: WinningCommitSummary): Winner = {
    val files = (winner.addedFiles ++ winner.removedFiles).map(partitionOf(_, winner))
    Winner(winner.commitVersion, classOf(winner), ChangedScope.of(isPartitioned, files))
  }

  /** The attempt as it will be judged by others once it is made. */
  def asCommit(info: CurrentTransactionInfo): Winner = {
    val files = touched(info)
    val changed =
      if (!info.actions.exists(_.isInstanceOf[FileAction])) ChangedScope.Nothing
      else if (!isPartitioned || !files.areTold) ChangedScope.WholeTable
      else ChangedScope.Partitions(files.written)
    Winner(snapshot.version + 1, winnerClass, changed)
  }

  /** What a new run of the job may read and write, though its sources may have other rows then: the
    * partitions that its predicates name, or the whole table. An overwrite with a predicate stays in
    * them if this run has.
    */
  def claimed(info: CurrentTransactionInfo): ClaimScope = {
    val read = info.readPredicates.filter(_.shouldRewriteFilter).map(predicates.named)
    val named = read.flatten.flatten.distinct
    def staysInThem = replaces.nonEmpty && touched(info).areTold &&
      touched(info).written.forall(one => named.exists(_.toSet.subsetOf(one.values.toSet)))
    val isKnown = isPartitioned && !info.readWholeTable && !read.contains(None) &&
      named.size <= GovernedCommit.MostClaimed && (isConfined || staysInThem)
    val isRestore = operation.isInstanceOf[DeltaOperations.Restore]
    ClaimScope(Some(operationClass), if (isKnown) named else Nil, holdsAll = isRestore)
  }

  /** The partition of a winner's file; None if the log does not tell it. */
  def partitionOf(file: FileAction, winner: WinningCommitSummary): Option[Partition] =
    values.of(file, winner.commitInfo)

  /** The class in the winner's tags; for a foreign writer, the class derived from its commit. */
  private def classOf(winner: WinningCommitSummary): OperationClass =
    winner.commitInfo
      .flatMap(_.tags)
      .flatMap(_.get(CommitTags.Class))
      .flatMap(OperationClass.byName)
      .getOrElse {
        val name = winner.commitInfo.flatMap(info => Option(info.operation)).getOrElse("")
        val parameters = winner.commitInfo.flatMap(info => Option(info.operationParameters))
        val described = Operations.unquoted(parameters.getOrElse(Map.empty))
        classifier.classify(
          GovernedCommit.facts(name, described, winner.actions, isPartitioned)
        )
      }

  private def isPartitioned: Boolean = snapshot.metadata.partitionColumns.nonEmpty
}

object GovernedCommit {
  private val MostClaimed = 100

  def apply(
      policy: Policy,
      operation: DeltaOperations.Operation,
      actions: Seq[Action],
      snapshot: Snapshot,
      spark: SparkSession,
      replacesNull: Boolean,
      matched: Seq[MatchedScan],
      isConfined: Boolean
  ): GovernedCommit = {
    val values = new PartitionValues(spark, snapshot.metadata.partitionSchema)
    val predicates = new PartitionPredicates(spark, snapshot.metadata, values)
    val classifier = new Classifier(predicates.usesPartitionsOnly, policy)
    val parameters = operation.parameters.map { case (key, value) => key -> value.toString }
    val partitioned = snapshot.metadata.partitionColumns.nonEmpty
    val described = facts(operation.name, parameters, actions, partitioned).copy(
      removesAll = () =>
        snapshot.version < 0 || actions.count(_.isInstanceOf[RemoveFile]) == snapshot.numOfFiles
    )
    val operationClass = operation match {
      case known: ClassifiedOperation => known.judgedAs
      case _ => classifier.classify(described)
    }
    val replaces =
      described.parameter("predicate").filter(_ => operationClass == OperationClass.Overwrite)
    new GovernedCommit(
      policy,
      operation,
      operationClass,
      replaces,
      replacesDynamically = replaces.isEmpty && described.replacesDynamically,
      replacesNull,
      matched,
      isConfined,
      classifier,
      predicates,
      values,
      snapshot,
      Author.of(spark).user
    )
  }

  private def facts(
      name: String,
      parameters: Map[String, String],
      actions: Seq[Action],
      partitioned: Boolean
  ): OperationFacts = {
    val files = actions.collect { case f: FileAction if !f.isInstanceOf[AddCDCFile] => f }
    OperationFacts(
      name,
      parameters,
      addsFiles = files.exists(_.isInstanceOf[AddFile]),
      removesFiles = files.exists(_.isInstanceOf[RemoveFile]),
      changesData = files.exists(_.dataChange),
      removesAll = () => true,
      partitioned = partitioned
    )
  }
}
