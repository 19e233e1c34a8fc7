package io.interlock.spark.commits

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.RowId.RowTrackingMetadataDomain
import org.apache.spark.sql.delta.actions.{Action, CommitInfo, DomainMetadata}
import org.apache.spark.sql.delta.util.{DeltaCommitFileProvider, FileNames, JsonUtils}
import org.apache.spark.sql.delta.{RowTracking, Snapshot, VersionChecksum}

/** What the log itself says of the version of a snapshot: which transaction made it, and the
  * highest row id that was given. A `.crc` is proved by it: the file may be of a commit that another
  * writer has replaced, or of another version, or wrong.
  *
  * One commit file is read, and earlier ones only as long as none of them gave row ids.
  *
  * @param known
  *   the checksum of a commit, where it is proved already
  */
final class NewestVersion(
    snapshot: Snapshot,
    known: FileStatus => Option[VersionChecksum]
) {
  import NewestVersion._

  private val log = snapshot.deltaLog

  /** @throws java.io.IOException
    *   where the log cannot be read
    */
  def proves(checksum: VersionChecksum): Boolean =
    commitInfo.exists(isOf(_, checksum)) &&
      (checksum.domainMetadata.isEmpty || !RowTracking.isSupported(snapshot.protocol) ||
        highestRowId == highestRowIdOf(checksum))

  private def commitInfo: Option[CommitInfo] =
    actions(DeltaCommitFileProvider(snapshot).deltaFile(snapshot.version))(
      _.collectFirst { case info: CommitInfo => info }
    )

  /** The last one that a commit has set. */
  private def highestRowId: Option[Long] = {
    def inCommit(file: FileStatus): Option[Option[Long]] =
      known(file).filter(_.domainMetadata.nonEmpty).map(highestRowIdOf)
        .orElse(highestRowIdIn(file.getPath))
    val deltas = snapshot.logSegment.deltas.reverseIterator
    def newest =
      if (deltas.hasNext) deltas.flatMap(inCommit).nextOption()
      else highestRowIdIn(FileNames.unsafeDeltaFile(log.logPath, snapshot.version))
    newest.getOrElse(highestRowIdInCheckpoint)
  }

  private def highestRowIdIn(file: Path): Option[Option[Long]] =
    lines(file)(
      _.filter(_.contains(Domain)).map(Action.fromJson)
        .collectFirst { case domain: DomainMetadata if isRowTracking(domain) => highest(domain) }
    )

  /** Reads one column, by a Spark job. */
  private def highestRowIdInCheckpoint: Option[Long] =
    snapshot.checkpointProvider.loadActionsForStateReconstruction(SparkSession.active, log).flatMap(
      _.where("domainMetadata.domain IS NOT NULL")
        .selectExpr("domainMetadata.domain", "domainMetadata.configuration")
        .collect()
        .map(row => DomainMetadata(row.getString(0), row.getString(1), removed = false))
        .find(isRowTracking)
        .flatMap(highest)
    )

  private def actions[A](file: Path)(read: Iterator[Action] => A): A =
    lines(file)(lines => read(lines.map(Action.fromJson)))

  private def lines[A](file: Path)(read: Iterator[String] => A): A = {
    val lines = log.store.readAsIterator(file, log.newDeltaHadoopConf())
    try read(lines)
    finally lines.close()
  }
}

private object NewestVersion {

  /** In each line that sets the highest row id. */
  private val Domain = "\"delta.rowTracking\""

  /** Whether all that both say of the commit is the same, and they say something. */
  private def isOf(info: CommitInfo, checksum: VersionChecksum): Boolean = {
    val both = info.txnId.zip(checksum.txnId) ++
      info.inCommitTimestamp.zip(checksum.inCommitTimestampOpt)
    both.nonEmpty && both.forall { case (here, there) => here == there }
  }

  private def isRowTracking(domain: DomainMetadata) = RowTrackingMetadataDomain.isSameDomain(domain)

  private def highestRowIdOf(checksum: VersionChecksum): Option[Long] =
    checksum.domainMetadata.flatMap(_.find(isRowTracking)).flatMap(highest)

  private def highest(domain: DomainMetadata): Option[Long] = Option.when(!domain.removed)(
    JsonUtils.fromJson[RowTrackingMetadataDomain](domain.configuration).rowIdHighWaterMark
  )
}
