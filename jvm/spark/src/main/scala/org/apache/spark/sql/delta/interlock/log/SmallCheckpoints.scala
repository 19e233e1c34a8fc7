package org.apache.spark.sql.delta.interlock.log

import java.util.UUID

import scala.util.Try
import scala.util.control.NonFatal

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.Job
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.encoderFor
import org.apache.spark.sql.catalyst.expressions.{InterpretedProjection, Projection}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.implicits._
import org.apache.spark.sql.delta.shims.VariantShreddingShims
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType

/** Checkpoints of small tables, written without a Spark job.
  *
  * For each checkpoint Delta replays the log from the last one, by several Spark jobs, which take
  * their time even for a table of a few files. Here the last checkpoint is read by
  * [[CheckpointReader]], or kept in memory if this process wrote it, and the commits since are
  * replayed by Delta's `InMemoryLogReplay`. Columns and format are Delta's. A state that does not
  * agree with the version's checksum is not used.
  */
private[interlock] object SmallCheckpoints extends Logging {

  /** The most live files of a table. */
  private val MostFiles = 5000

  /** The most actions of a checkpoint, which also has the files that were removed within the
    * retention time, and of all checkpoints that are kept.
    */
  private val MostActions = 25000
  private val MostActionsOfAll = 50000

  /** The most bytes of commits that are replayed. */
  private val MostBytes = 16L << 20

  /** The actions of checkpoints, by their files. A cache of several parts would divide the weight
    * among them.
    */
  private val kept = CacheBuilder.newBuilder().softValues().concurrencyLevel(1)
    .maximumWeight(MostActionsOfAll.toLong)
    .weigher((_: (Path, Long, Long), actions: Vector[Action]) => actions.size.max(1))
    .build[(Path, Long, Long), Vector[Action]]()

  private val layouts = CacheBuilder.newBuilder().softValues().maximumSize(1000)
    .build[(Metadata, Protocol, Seq[Any]), Layout]()

  /** Writes the checkpoint file of a snapshot.
    *
    * @return
    *   the content of `_last_checkpoint`; none if nothing was written, and Delta has to write the
    *   checkpoint
    */
  def write(session: SparkSession, snapshot: Snapshot): Option[LastCheckpointInfo] = for {
    checksum <- Checksums.of(snapshot)
    if isSmall(checksum) && isOneFile(session, snapshot)
    if LastCheckpointFile.recently(snapshot.deltaLog).forall(isSmall)
    actions <- tried(snapshot)(stateOf(snapshot)).filter(agrees(_, checksum))
    written <- tried(snapshot)(written(session, snapshot, actions))
  } yield written

  /** A commit of another writer may hold what Delta's replay skips and Jackson refuses. */
  private def tried[A](snapshot: Snapshot)(work: => Option[A]): Option[A] =
    try work
    catch {
      case NonFatal(error) =>
        logInfo(s"Delta writes checkpoint ${snapshot.version} of ${snapshot.path}.", error)
        None
    }

  /** Whether a table's checkpoints are likely to be written in this way. */
  def areOf(session: SparkSession, snapshot: Snapshot): Boolean =
    snapshot.checksumOpt.exists(isSmall) && isOneFile(session, snapshot)

  private def isSmall(checksum: VersionChecksum) = checksum.numFiles <= MostFiles

  /** Whether the next checkpoint is likely to have few enough actions. */
  def isSmall(last: LastCheckpointInfo): Boolean = last.size <= MostActions

  private def isOneFile(session: SparkSession, snapshot: Snapshot): Boolean =
    Checkpoints.getV2CheckpointFormatOpt(session, snapshot).isEmpty &&
      session.sessionState.conf.getConf(DeltaSQLConf.DELTA_CHECKPOINT_PART_SIZE).isEmpty

  private def stateOf(snapshot: Snapshot): Option[Vector[Action]] =
    atLastCheckpoint(snapshot).flatMap(replayed(_, snapshot)).orElse(collected(snapshot))
      .filter(_.size <= MostActions)

  private def key(file: FileStatus) = (file.getPath, file.getLen, file.getModificationTime)

  private def atLastCheckpoint(snapshot: Snapshot): Option[Vector[Action]] =
    snapshot.checkpointProvider.topLevelFiles match {
      case Seq() => Some(Vector.empty)
      case Seq(file) if file.getPath.getName.endsWith(".checkpoint.parquet") =>
        Option(kept.getIfPresent(key(file)))
          .orElse(CheckpointReader.read(file, snapshot.deltaLog.newDeltaHadoopConf(), MostActions))
      case _ => None
    }

  /** The state after the commits since the last checkpoint; none if they are too large. */
  private def replayed(before: Vector[Action], snapshot: Snapshot): Option[Vector[Action]] = {
    val log = snapshot.deltaLog
    val since = snapshot.logSegment.deltas
    Option.when(since.map(_.getLen).sum <= MostBytes) {
      val replay = new InMemoryLogReplay(
        Some(snapshot.minFileRetentionTimestamp),
        snapshot.minSetTransactionRetentionTimestamp
      )
      val canonical = log.getCanonicalPathFunction(runsOnExecutors = false)
      replay.append(
        snapshot.checkpointProvider.version,
        before.iterator.map(withPath(_, canonical))
      )
      CommitReader.read(log, since).map(CommitReader.summary).foreach { commit =>
        val actions = commit.actions.iterator.map(withoutMaps).map(withPath(_, canonical))
        replay.append(commit.commitVersion, actions)
      }
      replay.checkpoint.toVector
    }
  }

  private def withPath(action: Action, canonical: String => String): Action = action match {
    case add: AddFile => add.copy(path = canonical(add.path))
    case remove: RemoveFile => remove.copy(path = canonical(remove.path))
    case other => other
  }

  /** An action of a commit, without what a checkpoint does not have of it, and without maps that are
    * not there: Jackson reads such a map as an empty one, and Delta's replay as NULL. In checkpoints
    * both are told apart.
    */
  private def withoutMaps(action: Action): Action = action match {
    case add: AddFile => add.copy(tags = orNull(add.tags))
    case remove: RemoveFile =>
      val isWhole = remove.extendedFileMetadata.contains(true)
      val values = if (isWhole) remove.partitionValues else orNull(remove.partitionValues)
      remove.copy(partitionValues = values, tags = null, stats = null)
    case other => other
  }

  private def orNull(map: Map[String, String]): Map[String, String] =
    Option(map).filter(_.nonEmpty).orNull

  /** The state by Delta's replay of the log, with at most one action too many. */
  private def collected(snapshot: Snapshot): Option[Vector[Action]] =
    Some(snapshot.stateDS.limit(MostActions + 1).collect().map(_.unwrap).toVector)

  private def agrees(actions: Vector[Action], checksum: VersionChecksum): Boolean = {
    val adds = actions.collect { case add: AddFile => add }
    adds.size == checksum.numFiles && adds.map(_.size).sum == checksum.tableSizeBytes &&
    actions.collect { case metadata: Metadata => metadata } == Seq(checksum.metadata) &&
    actions.collect { case protocol: Protocol => protocol } == Seq(checksum.protocol)
  }

  private def written(
      session: SparkSession,
      snapshot: Snapshot,
      actions: Vector[Action]
  ): Option[LastCheckpointInfo] = layoutOf(session, snapshot).map { layout =>
    val file = layout.synchronized {
      put(session, snapshot, layout.schema, layout.rows(actions))
    }
    kept.put(key(file), actions)
    LastCheckpointInfo(
      version = snapshot.version,
      size = actions.size.toLong,
      parts = None,
      sizeInBytes = Some(file.getLen),
      numOfAddFiles = Some(actions.count(_.isInstanceOf[AddFile]).toLong),
      checkpointSchema =
        Checkpoints.checkpointSchemaToWriteInLastCheckpointFile(session, layout.schema)
    )
  }

  /** How the rows of a table's checkpoints are made from actions: Delta's plan for them, which takes
    * longer to make than a small checkpoint to write.
    *
    * @param projections
    *   of a row that holds a `SingleAction`, one after the other
    */
  final private class Layout(val schema: StructType, projections: Seq[Projection]) {
    def rows(actions: Seq[Action]): Iterator[InternalRow] = actions.iterator.map { action =>
      projections.foldLeft(InternalRow(action.wrap))((row, projection) => projection(row))
    }
  }

  private def layoutOf(session: SparkSession, snapshot: Snapshot): Option[Layout] = {
    val conf = session.sessionState.conf
    val settings = Seq[Any](
      conf.getConf(DeltaSQLConf.CHECKPOINT_DROP_BACK_REFERENCE_ENABLED),
      Checkpoints.shouldWriteStatsAsStruct(conf, snapshot),
      conf.sessionLocalTimeZone,
      conf.ansiEnabled,
      conf.legacyTimeParserPolicy,
      conf.caseSensitiveAnalysis
    )
    val key = (snapshot.metadata, snapshot.protocol, settings)
    val known = Option(layouts.getIfPresent(key))
    known.orElse(planned(session, snapshot).map { made => layouts.put(key, made); made })
  }

  private def planned(session: SparkSession, snapshot: Snapshot): Option[Layout] = {
    val encoder = encoderFor(singleActionEncoder)
    val nothing = session.sparkContext.emptyRDD[InternalRow]
    val state = castToImpl(session).internalCreateDataFrame(nothing, encoder.schema)
      .drop("commitInfo", "cdc", "checkpointMetadata", "sidecar", "checkpoint")
      .withColumn("remove", col("remove").dropFields("tags", "stats"))
    val plan = Checkpoints.buildCheckpoint(state, snapshot).queryExecution
    def projections(plan: LogicalPlan): Option[Seq[Projection]] = plan match {
      case Project(columns, from) =>
        projections(from).map(_ :+ new InterpretedProjection(columns, from.output))
      case _: LogicalRDD => Some(Seq(new InterpretedProjection(encoder.serializer)))
      case _ => None
    }
    projections(plan.optimizedPlan).map(new Layout(plan.analyzed.schema.asNullable, _))
  }

  /** Writes the rows to the checkpoint's file. */
  private def put(
      session: SparkSession,
      snapshot: Snapshot,
      schema: StructType,
      rows: Iterator[InternalRow]
  ): FileStatus = {
    val log = snapshot.deltaLog
    val job = Job.getInstance(log.newDeltaHadoopConf())
    val options = VariantShreddingShims.getVariantInferShreddingSchemaOptions(false)
    val factory =
      new ParquetFileFormat().prepareWrite(
        session,
        job,
        Map.empty[String, String] ++ options,
        schema
      )
    val conf = job.getConfiguration
    if (QuickLocalFileSystem.isLocal(log.logPath)) QuickLocalFileSystem.use(conf)
    val file = FileNames.checkpointFileSingular(log.logPath, snapshot.version)
    val isRenamed = log.store.isPartialWriteVisible(log.logPath, conf)
    val target =
      if (isRenamed) new Path(file.getParent, s".${file.getName}.${UUID.randomUUID()}.tmp")
      else file
    try
      Checkpoints.writeSingleFileOnExecutor(
        conf,
        factory,
        schema,
        target,
        file,
        isRenamed,
        partition = 0,
        expectedNumParts = 1,
        rows,
        runWriteInNewThreadOnGCS = true
      ).toFileStatus
    catch {
      case failed: Throwable =>
        if (isRenamed) Try(target.getFileSystem(conf).delete(target, false)): Unit
        throw failed
    }
  }
}
