package org.apache.spark.sql.delta.interlock

import scala.util.Try

import io.interlock.rules._
import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.util.JsonUtils

/** A commit under a policy: what it is, and how winners look to it.
  *
  * @param replaces
  *   the partition predicate of an overwrite, as the statement wrote it
  * @param replacesDynamically
  *   whether an overwrite replaces the partitions that it writes
  * @param replacesNull
  *   whether those are among them in which a value is NULL
  */
final private[interlock] case class PolicedAttempt(
    policy: Policy,
    operation: DeltaOperations.Operation,
    operationClass: OperationClass,
    replaces: Option[String],
    private val replacesDynamically: Boolean,
    private val replacesNull: Boolean,
    private val classifier: Classifier,
    private val predicates: PartitionPredicates,
    private val values: PartitionValues,
    private val snapshot: Snapshot
) {

  /** Whether Delta tries it again after a conflict, which it does with its own compactions. */
  def isRetriedByDelta: Boolean =
    OperationClass.compactions(operationClass) && !operation.isInstanceOf[CompactOperation]

  /** What the history records of the attempt. */
  def tags: Map[String, String] =
    Map(CommitTags.Class -> operationClass.name, CommitTags.Policy -> policy.name) ++
      replaces.map(CommitTags.Replaced -> _)

  def refuseUnlessPermitted(table: String): Unit =
    if (!policy.permits(operationClass))
      throw InterlockException.operationNotSupported(operation.name, table, policy.name)

  /** The attempt, and behind it what an overwrite writes outside of what it replaces, as an APPEND.
    *
    * @param info
    *   the transaction as it stands after the winners before the one to be judged
    */
  def asAttempts(info: CurrentTransactionInfo): Seq[Attempt] = {
    val appended =
      if (operationClass == OperationClass.Overwrite)
        files(info).added.filterNot(replaced(info).covers)
      else Set.empty[Partition]
    Attempt(operationClass, scope(info)) +:
      Option.when(appended.nonEmpty)(
        Attempt(OperationClass.Append, AttemptScope.Partitions(appended, Nil))
      ).toSeq
  }

  private def scope(info: CurrentTransactionInfo): AttemptScope = {
    lazy val written = files(info).written
    operationClass match {
      case _ if !isPartitioned || files(info).areUnknown => AttemptScope.WholeTable
      case _ if policy.judgesReads && info.readWholeTable => AttemptScope.WholeTable
      case _ if policy.judgesReads =>
        val selects = replacesPredicate ++ info.readPredicates.map(reads(_, written))
        AttemptScope.Partitions(written, selects.toSeq)
      case OperationClass.Append => AttemptScope.Partitions(written, Nil)
      case OperationClass.Overwrite => replaced(info)
      case _ if info.readWholeTable => AttemptScope.WholeTable
      case _ => AttemptScope.Partitions(written, info.readPredicates.map(predicates.ofRead))
    }
  }

  /** What an overwrite replaces, whoever wrote it. */
  def replaced(info: CurrentTransactionInfo): AttemptScope =
    if (!isPartitioned) AttemptScope.WholeTable
    else if (replacesDynamically)
      AttemptScope.Partitions(
        files(info).written.filter(replacesNull || !_.values.values.exists(_ == null)),
        Nil
      )
    else
      replacesPredicate.fold[AttemptScope](AttemptScope.WholeTable)(selects =>
        AttemptScope.Partitions(Set.empty, Seq(selects))
      )

  private lazy val replacesPredicate = replaces.map(predicates.ofSql)

  /** The partitions of the files that the attempt adds or removes. */
  final private class Files(val actions: Seq[Action], commit: Option[CommitInfo]) {
    private def partitionsOf(files: Seq[FileAction]) = files.map(values.of(_, commit)).toSet
    private val ofAdded = partitionsOf(actions.collect { case add: AddFile => add })
    private val all = ofAdded ++ partitionsOf(actions.collect { case file: RemoveFile => file })

    val added: Set[Partition] = ofAdded.flatten
    val written: Set[Partition] = all.flatten

    /** Whether the log does not tell one of them. */
    def areUnknown: Boolean = all.contains(None)
  }

  /** Those of the last actions that were asked for, which many winners leave as they are. */
  private var last = new Files(Nil, None)

  private def files(info: CurrentTransactionInfo): Files = {
    if (last.actions ne info.actions) last = new Files(info.actions, info.commitInfo)
    last
  }

  /** The partitions that a predicate of this attempt selects, by its actions so far. */
  def selects(read: DeltaTableReadPredicate, info: CurrentTransactionInfo): Partition => Boolean =
    reads(read, files(info).written)

  /** Delta looks up the partitions that a dynamic overwrite writes by a predicate of its own. */
  private def reads(
      read: DeltaTableReadPredicate,
      written: => Set[Partition]
  ): Partition => Boolean =
    if (read.shouldRewriteFilter) predicates.ofRead(read) else written

  def asWinner(winner: WinningCommitSummary): Winner = {
    val files = (winner.addedFiles ++ winner.removedFiles).map(partitionOf(_, winner))
    Winner(winner.commitVersion, classOf(winner), ChangedScope.of(isPartitioned, files))
  }

  /** The partition of a winner's file; None where the log does not tell. */
  def partitionOf(file: FileAction, winner: WinningCommitSummary): Option[Partition] =
    values.of(file, winner.commitInfo)

  /** The class in the winner's tags, or for foreign writers what their commit tells. */
  private def classOf(winner: WinningCommitSummary): OperationClass =
    winner.commitInfo
      .flatMap(_.tags)
      .flatMap(_.get(CommitTags.Class))
      .flatMap(OperationClass.byName)
      .getOrElse {
        val name = winner.commitInfo.fold("")(_.operation)
        val parameters = winner.commitInfo.flatMap(info => Option(info.operationParameters))
        val described = PolicedAttempt.unquoted(parameters.getOrElse(Map.empty))
        classifier.classify(
          PolicedAttempt.facts(name, described, winner.actions, isPartitioned)
        )
      }

  private def isPartitioned: Boolean = snapshot.metadata.partitionColumns.nonEmpty
}

private[interlock] object PolicedAttempt {
  def apply(
      policy: Policy,
      operation: DeltaOperations.Operation,
      actions: Seq[Action],
      snapshot: Snapshot,
      spark: SparkSession,
      replacesNull: Boolean
  ): PolicedAttempt = {
    val values = new PartitionValues(spark, snapshot.metadata.partitionSchema)
    val predicates = new PartitionPredicates(spark, snapshot.metadata, values)
    val classifier = new Classifier(predicates.usesPartitionsOnly, policy)
    val parameters = operation.parameters.map { case (key, value) => key -> value.toString }
    val partitioned = snapshot.metadata.partitionColumns.nonEmpty
    val described = facts(operation.name, parameters, actions, partitioned).copy(
      removesAll = () =>
        snapshot.version < 0 || actions.count(_.isInstanceOf[RemoveFile]) == snapshot.numOfFiles
    )
    val operationClass = classifier.classify(described)
    val replaces =
      described.parameter("predicate").filter(_ => operationClass == OperationClass.Overwrite)
    new PolicedAttempt(
      policy,
      operation,
      operationClass,
      replaces,
      replacesDynamically = replaces.isEmpty && described.replacesDynamically,
      replacesNull,
      classifier,
      predicates,
      values,
      snapshot
    )
  }

  /** A commit's parameters as its file has them: strings are JSON, quoted and escaped. */
  def unquoted(parameters: Map[String, String]): Map[String, String] =
    parameters.map { case (key, value) =>
      key -> Option(value).fold("")(v => Try(JsonUtils.fromJson[String](v)).getOrElse(v))
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
