package org.apache.spark.sql.delta.interlock.log

import org.apache.spark.sql.delta.actions.{DomainMetadata, SetTransaction, SingleAction}
import org.apache.spark.sql.delta.stats.{DeletedRecordCountsHistogram, FileSizeHistogram}
import org.apache.spark.sql.delta.{Snapshot, VersionChecksum}
import org.apache.spark.sql.{DataFrame, Dataset}

/** A snapshot that takes the domains, the number of files and their size from its checksum. Delta
  * 4.4 replays the log for them, with three Spark jobs at each commit to a table with row tracking.
  * Everything else it shares with the snapshot that it replaces.
  */
final private[interlock] class ChecksummedSnapshot private (
    read: Snapshot,
    checksum: VersionChecksum,
    override val domainMetadata: Seq[DomainMetadata]
) extends Snapshot(read.path, read.version, read.logSegment, read.deltaLog, Some(checksum)) {
  override def numOfFiles: Long = checksum.numFiles
  override def sizeInBytes: Long = checksum.tableSizeBytes

  override def stateDF: DataFrame = read.stateDF
  override def stateDS: Dataset[SingleAction] = read.stateDS
  override protected def withStatsInternal: DataFrame = read.withStats

  override def numOfSetTransactions: Long = read.numOfSetTransactions
  override def numOfRemoves: Long = read.numOfRemoves
  override def numOfMetadata: Long = read.numOfMetadata
  override def numOfProtocol: Long = read.numOfProtocol
  override def setTransactions: Seq[SetTransaction] = read.setTransactions
  override def fileSizeHistogram: Option[FileSizeHistogram] = read.fileSizeHistogram
  override def numDeletedRecordsOpt: Option[Long] = read.numDeletedRecordsOpt
  override def numDeletionVectorsOpt: Option[Long] = read.numDeletionVectorsOpt
  override def deletedRecordCountsHistogramOpt: Option[DeletedRecordCountsHistogram] =
    read.deletedRecordCountsHistogramOpt
}

private[interlock] object ChecksummedSnapshot {

  /** A snapshot with a proved checksum; otherwise the given one, without any checksum that was not
    * proved, since Delta compares a replay of the log with it.
    */
  def of(read: Snapshot): Snapshot =
    if (read.version < 0 || read.getClass != classOf[Snapshot]) read
    else {
      val proved = Checksums.of(read)
      val right =
        if (read.checksumOpt.isEmpty || proved == read.checksumOpt) read
        else new Snapshot(read.path, read.version, read.logSegment, read.deltaLog, proved)
      proved.flatMap(_.domainMetadata)
        .fold(right)(new ChecksummedSnapshot(right, proved.get, _))
    }
}
