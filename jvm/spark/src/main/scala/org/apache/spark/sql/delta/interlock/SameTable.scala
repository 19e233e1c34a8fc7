package org.apache.spark.sql.delta.interlock

import scala.util.Try

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

/** Tells a table that was dropped, or dropped and created anew, while a statement ran. */
private[interlock] object SameTable {

  /** @param lastCommit
    *   the last commit file that the statement knows, which tells it; the table's id where it does
    *   not
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
    Try(isLogSame).getOrElse(false) || Try(idNow).toOption.contains(read.metadata.id)
  }
}
