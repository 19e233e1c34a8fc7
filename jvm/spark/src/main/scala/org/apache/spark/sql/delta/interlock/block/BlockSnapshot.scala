package org.apache.spark.sql.delta.interlock.block

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.stats.DeltaScan
import org.apache.spark.sql.delta.{Snapshot, VersionChecksum}
import org.apache.spark.sql.functions.{col, from_json}
import org.apache.spark.sql.{DataFrame, Dataset}

/** A snapshot that is derived from another one, without a replay of the log. */
sealed abstract private[block] class DerivedSnapshot(base: Snapshot, metadata: Metadata)
    extends Snapshot(
      base.path,
      base.version,
      base.logSegment,
      base.deltaLog,
      Some(DerivedSnapshot.checksum(base, metadata))
    ) {
  override def setTransactions: Seq[SetTransaction] = base.setTransactions
  override def domainMetadata: Seq[DomainMetadata] = base.domainMetadata
}

private object DerivedSnapshot {

  /** From a checksum Delta takes metadata and protocol when it makes a snapshot; else it would read
    * the log for them. What is asked for later, the snapshots override.
    */
  private def checksum(base: Snapshot, metadata: Metadata): VersionChecksum = VersionChecksum(
    txnId = None,
    tableSizeBytes = 0L,
    numFiles = 0L,
    numDeletedRecordsOpt = None,
    numDeletionVectorsOpt = None,
    numMetadata = 1,
    numProtocol = 1,
    inCommitTimestampOpt = base.getInCommitTimestampOpt,
    setTransactions = None,
    domainMetadata = None,
    metadata = metadata,
    protocol = base.protocol,
    fileSizeHistogram = None,
    deletedRecordCountsHistogramOpt = None,
    allFiles = None,
    lastManifestCommit = None
  )
}

/** A table as a block sees it: a version of it with the block's changes. Its numbered batches and row
  * ids are those of the version, so that no statement of the block takes another one's batch for its
  * own.
  */
final private[block] class BlockSnapshot(base: Snapshot, net: NetActions)
    extends DerivedSnapshot(base, net.metadata.getOrElse(base.metadata)) {

  override def numOfFiles: Long = base.numOfFiles - net.removed.size + net.added.size
  override def sizeInBytes: Long = base.sizeInBytes -
    net.removed.values.map(_.size.getOrElse(0L)).sum + net.added.values.map(_.size).sum

  override lazy val stateDF: DataFrame = {
    import org.apache.spark.sql.delta.implicits._
    val kept = base.stateDF.where(col("add").isNull || isKept("add.path"))
    kept.unionByName(spark.createDataset(net.added.values.map(_.wrap).toSeq).toDF())
  }

  override def stateDS: Dataset[SingleAction] = {
    import org.apache.spark.sql.delta.implicits._
    stateDF.as[SingleAction]
  }

  override protected lazy val withStatsInternal: DataFrame = {
    import org.apache.spark.sql.delta.implicits._
    val own = spark.createDataset(net.added.values.toSeq).toDF()
      .withColumn("stats", from_json(col("stats"), statsSchema))
    base.withStats.where(isKept("path")).unionByName(own)
  }

  private def isKept(path: String) = !col(path).isInCollection(net.paths)
}

/** A snapshot for queries of a block: it tells what they read. Their scans are those of the plain one,
  * which Delta asks for files again when it runs them.
  *
  * @param read
  *   called with each scan that is planned; with none if a query counts rows without a scan
  */
final private[block] class ReadSnapshot(plain: Snapshot, read: Option[DeltaScan] => Unit)
    extends DerivedSnapshot(plain, plain.metadata) {
  override def numOfFiles: Long = plain.numOfFiles
  override def sizeInBytes: Long = plain.sizeInBytes
  override def stateDF: DataFrame = plain.stateDF
  override def stateDS: Dataset[SingleAction] = plain.stateDS
  override protected def withStatsInternal: DataFrame = plain.withStats

  override def filesForScan(filters: Seq[Expression], keepNumRecords: Boolean): DeltaScan =
    told(plain.filesForScan(filters, keepNumRecords))
  override def filesForScan(limit: Long, partitionFilters: Seq[Expression]): DeltaScan =
    told(plain.filesForScan(limit, partitionFilters))
  override def filesWithStatsForScan(partitionFilters: Seq[Expression]): DataFrame = {
    read(None)
    plain.filesWithStatsForScan(partitionFilters)
  }

  private def told(scan: DeltaScan) = {
    read(Some(scan))
    scan
  }
}
