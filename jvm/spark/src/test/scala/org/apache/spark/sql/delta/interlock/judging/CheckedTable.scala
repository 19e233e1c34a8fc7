package org.apache.spark.sql.delta.interlock.judging

import java.nio.file.Files
import java.sql.Timestamp

import io.interlock.rules.rebase.{RowSet, Segment}
import io.interlock.rules.{OperationClass, Policies}
import io.interlock.spark.commits.CommitTags
import io.interlock.spark.compaction.{CompactOperation, CompactionKind, Lineage}
import io.interlock.spark.errors.InterlockConflict
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.interlock.rebase.RowVectors
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.types.{IntegerType, StructType}
import org.apache.spark.sql.{SaveMode, SparkSession}

/** A table of two files, A and B, of three rows each, that two commits change: what the checker makes
  * of the later one. There are actions only, no data: no row is read.
  */
final class CheckedTable(spark: SparkSession) {
  import CheckedTable.Job

  private val folder = new Path(Files.createTempDirectory("checked-table").toUri)
  private val log = DeltaLog.forTable(spark, folder)
  private val files = Seq("A", "B").map(file(_))
  private val snapshot = {
    val schema = new StructType().add("id", IntegerType)
    val protocol = Protocol(3, 7).withFeature(DeletionVectorsTableFeature)
    val metadata = Metadata(schemaString = schema.json)
    log.startTransaction().commit(protocol +: metadata +: files, DeltaOperations.ManualUpdate)
    log.update()
  }
  private val vectors = new RowVectors(log, _ => ())

  def overwrite(output: String): Job = Job(
    OperationClass.Overwrite,
    DeltaOperations.Write(SaveMode.Overwrite),
    files.map(_.removeWithTimestamp()) :+ file(output)
  )

  def append(output: String): Job = Job(
    OperationClass.Append,
    DeltaOperations.Write(SaveMode.Append),
    Seq(file(output)),
    isBlindAppend = true
  )

  /** Marks a row of A dead. */
  def kill(row: Long): Job = Job(
    OperationClass.Mutate,
    DeltaOperations.Delete(Nil),
    Seq(files.head.removeWithTimestamp(), file("A", RowSet.of(row))),
    reads = Set(files.head)
  )

  def compact(kind: CompactionKind, operationClass: OperationClass, output: String): Job = {
    val segments = Seq(Segment("A", "", 0, 3, 0), Segment("B", "", 0, 3, 3))
    val written = Lineage.written(file(output, rows = 6).copy(dataChange = false), segments)
    val removed = files.map(_.removeWithTimestamp(dataChange = false))
    val actions = Lineage.committed(written +: removed)
    Job(operationClass, new CompactOperation(kind, None), actions)
  }

  /** Leaves the order of the table's commits to a catalog. */
  def handOver: Job = {
    val metadata = snapshot.metadata
      .copy(configuration = Map("io.unitycatalog.tableId" -> "1")) // a user's, as far as we know
    val protocol = snapshot.protocol.withFeature(CatalogOwnedTableFeature)
    Job(OperationClass.Metadata, DeltaOperations.UpgradeProtocol(protocol), Seq(protocol, metadata))
  }

  private def file(path: String, dead: RowSet = RowSet.empty, rows: Int = 3): AddFile = AddFile(
    path,
    partitionValues = Map.empty,
    size = 100,
    modificationTime = 0,
    dataChange = true,
    stats = s"""{"numRecords":$rows,"tightBounds":${dead.isEmpty}}""",
    deletionVector = RowVectors.inMemory(dead)
  )

  /** What becomes of `later` behind `earlier`: the kind of the conflict, or its actions, each as `-` or
    * `+`, the file, and its dead rows.
    *
    * @param policy
    *   by name
    */
  def judge(policy: String, earlier: Job, later: Job): Either[String, Set[String]] = {
    val rules = Policies.all.find(_.name == policy).get
    val info = CommitInfo.empty().copy(
      timestamp = new Timestamp(0),
      operation = earlier.operation.name,
      isBlindAppend = Some(earlier.isBlindAppend),
      tags = Some(Map(CommitTags.Class -> earlier.operationClass.name))
    )
    val version = FileNames.unsafeDeltaFile(log.logPath, snapshot.version + 1)
    val winner = new WinningCommitSummary(
      info +: earlier.actions,
      new FileStatus(0, false, 0, 0, 0, version),
      readTimeMs = 0
    )
    val commit = GovernedCommit(
      rules,
      later.operation,
      later.actions,
      snapshot,
      spark,
      replacesNull = true,
      matched = Nil,
      isConfined = false
    )
    assert(commit.operationClass == later.operationClass, commit.operationClass)
    val checker = new InterlockConflictChecker(
      spark,
      read(later),
      winner,
      IsolationLevel.fromString(rules.isolation),
      commit,
      snapshot.metadata,
      vectors,
      "t"
    )
    try Right(told(checker.checkConflictsAndValidateActions().actions))
    catch { case conflict: InterlockConflict => Left(conflict.getCondition) }
    finally vectors.finish()
  }

  /** A commit as it is when nobody was before it. */
  def untouched(job: Job): Set[String] = told(job.actions)

  private def read(later: Job) = CurrentTransactionInfo(
    txnId = "later",
    readPredicates = Vector.empty,
    readFiles = later.reads,
    readWholeTable = false,
    readAppIds = Set.empty,
    metadata = snapshot.metadata,
    protocol = snapshot.protocol,
    actions = later.actions,
    readSnapshot = snapshot,
    commitInfo = Some(CommitInfo.empty().copy(operation = later.operation.name)),
    readRowIdHighWatermark = RowId.MISSING_HIGH_WATER_MARK,
    catalogTable = None,
    domainMetadata = Nil,
    op = later.operation
  )

  private def told(actions: Seq[Action]): Set[String] = actions.collect {
    case add: AddFile => s"+${add.path}${dead(add.deletionVector)}"
    case remove: RemoveFile => s"-${remove.path}${dead(remove.deletionVector)}"
  }.toSet

  private def dead(vector: DeletionVectorDescriptor): String = {
    val rows = vectors.rowsOf(RowVectors.token(vector))
    (0L until 6L).filter(rows.contains).map(_.toString).mkString
  }
}

object CheckedTable {

  /** A commit: its class, its operation, what it does to files, and the files that it has read. */
  final case class Job(
      operationClass: OperationClass,
      operation: DeltaOperations.Operation,
      actions: Seq[Action],
      isBlindAppend: Boolean = false,
      reads: Set[AddFile] = Set.empty
  )
}
