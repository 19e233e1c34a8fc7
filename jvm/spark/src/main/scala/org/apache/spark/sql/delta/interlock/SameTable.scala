package org.apache.spark.sql.delta.interlock

import scala.util.Try

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Tells a table that was dropped, dropped and created anew, or put back from a backup while a
  * statement ran.
  */
private[interlock] object SameTable {

  /** @param lastCommit
    *   the last commit file that the statement knows, which tells it; where it does not, the
    *   table's id and the transaction that made the version that was read, as far as it is known
    */
  def isThere(
      deltaLog: DeltaLog,
      read: Snapshot,
      catalogTable: Option[CatalogTable],
      lastCommit: Option[FileStatus]
  ): Boolean = {
    val fs = deltaLog.logPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    def isLogSame = lastCommit.exists(known =>
      fs.getFileStatus(known.getPath).getModificationTime == known.getModificationTime
    )
    def idNow = deltaLog.update(catalogTableOpt = catalogTable).metadata.id
    Try(isLogSame).getOrElse(false) ||
    Try(idNow).toOption.contains(read.metadata.id) && Try(isVersionSame(read)).getOrElse(true)
  }

  /** True too where the log has the version no more. */
  private def isVersionSame(read: Snapshot): Boolean = {
    val made = Option(read).collect { case known: ChecksummedSnapshot => known }
      .flatMap(_.checksumOpt).flatMap(_.txnId)
    val now = made.flatMap(_ => new CommitLog(read).info(read.version)).flatMap(_.txnId)
    now.forall(made.contains)
  }
}
