package org.apache.spark.sql.delta.interlock

import scala.util.Try

import io.interlock.rules.ChangedScope.Partition
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
  */
final private[interlock] case class PolicedAttempt(
    policy: Policy,
    operation: DeltaOperations.Operation,
    operationClass: OperationClass,
    replaces: Option[String],
    private val replacesDynamically: Boolean,
    private val classifier: Classifier,
    private val predicates: PartitionPredicates,
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

  /** @param info
    *   the transaction as it stands after the winners before the one to be judged
    */
  def asAttempt(info: CurrentTransactionInfo): Attempt = Attempt(operationClass, scope(info))

  private def scope(info: CurrentTransactionInfo): AttemptScope = {
    lazy val written = this.written(info)
    operationClass match {
      case _ if !isPartitioned => AttemptScope.WholeTable
      case _ if policy.judgesReads && info.readWholeTable => AttemptScope.WholeTable
      case _ if policy.judgesReads =>
        val selects = replaces.map(predicates.ofSql) ++ info.readPredicates.map(reads(_, written))
        AttemptScope.Partitions(written, selects.toSeq)
      case OperationClass.Append => AttemptScope.Partitions(written, Nil)
      case OperationClass.Overwrite if replacesDynamically =>
        AttemptScope.Partitions(written, Nil)
      case OperationClass.Overwrite =>
        replaces.fold[AttemptScope](AttemptScope.WholeTable) { predicate =>
          AttemptScope.Partitions(written, Seq(predicates.ofSql(predicate)))
        }
      case _ if info.readWholeTable => AttemptScope.WholeTable
      case _ => AttemptScope.Partitions(written, info.readPredicates.map(predicates.ofRead))
    }
  }

  private def written(info: CurrentTransactionInfo): Set[Partition] = info.actions.collect {
    case add: AddFile => complete(add.partitionValues)
    case remove: RemoveFile if remove.partitionValues != null =>
      complete(remove.partitionValues)
  }.toSet

  /** The partitions that a predicate of this attempt selects, by its actions so far. */
  def selects(read: DeltaTableReadPredicate, info: CurrentTransactionInfo): Partition => Boolean =
    reads(read, written(info)).compose(complete)

  /** Delta looks up the partitions that a dynamic overwrite writes by a predicate of its own. */
  private def reads(
      read: DeltaTableReadPredicate,
      written: => Set[Partition]
  ): Partition => Boolean =
    if (read.shouldRewriteFilter) predicates.ofRead(read) else written

  def asWinner(winner: WinningCommitSummary): Winner = {
    val files = winner.addedFiles.map(add => Option(add.partitionValues).map(complete)) ++
      winner.removedFiles.map(remove => Option(remove.partitionValues).map(complete))
    Winner(winner.commitVersion, classOf(winner), ChangedScope.of(isPartitioned, files))
  }

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

  /** A partition with all columns: the log leaves null values out of a RemoveFile. */
  private def complete(partition: Partition): Partition =
    snapshot.metadata.physicalPartitionColumns
      .map(name => name -> partition.getOrElse(name, null))
      .toMap
}

private[interlock] object PolicedAttempt {
  def apply(
      policy: Policy,
      operation: DeltaOperations.Operation,
      actions: Seq[Action],
      snapshot: Snapshot,
      spark: SparkSession
  ): PolicedAttempt = {
    val predicates = new PartitionPredicates(spark, snapshot.metadata.partitionSchema)
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
      classifier,
      predicates,
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
