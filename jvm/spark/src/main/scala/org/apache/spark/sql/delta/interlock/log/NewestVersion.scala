package org.apache.spark.sql.delta.interlock.log

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.RowId.RowTrackingMetadataDomain
import org.apache.spark.sql.delta.actions.{Action, CommitInfo, DomainMetadata}
import org.apache.spark.sql.delta.util.{DeltaCommitFileProvider, JsonUtils}
import org.apache.spark.sql.delta.{RowTracking, Snapshot, VersionChecksum}

/** The facts in the log that prove a `.crc` of a snapshot's version: the transaction that made the
  * version, and the highest row id. A `.crc` file may belong to a commit that another writer has
  * replaced, or to another version, or it may be wrong.
  *
  * One commit file is read, once, and earlier ones until one has set row ids.
  *
  * @param known
  *   the checksum of a commit, if it is already proved
  */
final class NewestVersion(
    snapshot: Snapshot,
    known: FileStatus => Option[VersionChecksum]
) {
  import NewestVersion._

  private val log = snapshot.deltaLog
  private lazy val conf = log.newDeltaHadoopConf()

  /** @throws java.io.IOException
    *   if the log cannot be read
    */
  def proves(checksum: VersionChecksum): Boolean =
    commitInfo.exists(isOf(_, checksum)) &&
      (checksum.domainMetadata.isEmpty || !RowTracking.isSupported(snapshot.protocol) ||
        highestRowId == highestRowIdOf(checksum))

  private val file = DeltaCommitFileProvider(snapshot).deltaFile(snapshot.version)
  private lazy val newest = facts(file)

  private def commitInfo: Option[CommitInfo] = newest.collectFirst { case info: CommitInfo => info }

  /** The highest row id, by the last commit that has set it. */
  private def highestRowId: Option[Long] = {
    def inCommit(file: FileStatus): Option[Option[Long]] =
      known(file).filter(_.domainMetadata.nonEmpty).map(highestRowIdOf)
        .orElse(highestRowIdIn(file.getPath))
    val deltas = snapshot.logSegment.deltas.reverseIterator
    val inLog =
      if (deltas.hasNext) deltas.flatMap(inCommit).nextOption()
      else highestRowIdIn(file)
    inLog.getOrElse(highestRowIdInCheckpoint)
  }

  private def highestRowIdIn(commit: Path): Option[Option[Long]] =
    (if (commit == file) newest else facts(commit)).collectFirst {
      case domain: DomainMetadata => highest(domain)
    }

  /** The same by the checkpoint: reads one column, by a Spark job. */
  private def highestRowIdInCheckpoint: Option[Long] =
    snapshot.checkpointProvider.loadActionsForStateReconstruction(SparkSession.active, log).flatMap(
      _.where("domainMetadata.domain IS NOT NULL")
        .selectExpr("domainMetadata.domain", "domainMetadata.configuration")
        .collect()
        .map(row => DomainMetadata(row.getString(0), row.getString(1), removed = false))
        .find(isRowTracking)
        .flatMap(highest)
    )

  /** The two actions of a commit that tell the facts, as far as it has them. What comes after them
    * is not read.
    */
  private def facts(commit: Path): Seq[Action] = {
    val lines = log.store.readAsIterator(commit, conf)
    try
      lines.filter(line => Telling.exists(line.contains)).map(Action.fromJson).collect {
        case info: CommitInfo => info
        case domain: DomainMetadata if isRowTracking(domain) => domain
      }.take(2).toVector
    finally lines.close()
  }
}

private object NewestVersion {

  /** One of these texts is in each line that tells the transaction or the highest row id. */
  private val Telling = Seq("\"commitInfo\"", "\"delta.rowTracking\"")

  /** Whether the facts that both have of the commit are equal, and there is at least one. */
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
