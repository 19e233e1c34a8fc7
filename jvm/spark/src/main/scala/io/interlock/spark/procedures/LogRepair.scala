package io.interlock.spark.procedures

import io.interlock.spark.commits.{Coordinators, Operations}
import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.interlock.log.{CommitLog, DerivedFiles}
import org.apache.spark.sql.types.{LongType, StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** Takes the log of a table as it is, after another writer has replaced a commit of this application
  * or the table was put back from a backup. What may have been derived from commits that are gone is
  * deleted.
  */
object LogRepair {
  val schema: StructType = new StructType().add("version", LongType).add("operation", StringType)

  /** @param replaced
    *   the version of a commit that another one has replaced; if none is given, only checksums are
    *   deleted
    * @param statement
    *   what asks, for errors
    * @return
    *   the last commit, on top of which the next is made
    */
  def run(session: SparkSession, name: String, replaced: Option[Long], statement: String): Row = {
    def load() = NamedTable.load(session, name, statement)
    def snapshot(table: DeltaTableV2) = NamedTable.snapshot(session, table, statement)
    def readAnewNext(table: DeltaTableV2) =
      DeltaLog.invalidateCache(session, table.deltaLog.dataPath)
    readAnewNext(load())
    val before = load()
    val derived = new DerivedFiles(snapshot(before), before.catalogTable, name)
    try replaced.fold(derived.deleteChecksums())(derived.deleteSince)
    finally readAnewNext(before)
    val now = snapshot(load())
    // Last, so that statements which run meanwhile leave nothing that was read before.
    Coordinators.forget(now.deltaLog)
    // A cached plan keeps the log that it was made with, and may be of an earlier version.
    session.catalog.clearCache()
    Row(now.version, new CommitLog(now).info(now.version).flatMap(Operations.name).orNull)
  }
}
