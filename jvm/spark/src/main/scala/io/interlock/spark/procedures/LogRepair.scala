package io.interlock.spark.procedures

import io.interlock.spark.commits.{Coordinators, Operations}
import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.delta.interlock.log.{CommitLog, DerivedFiles}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
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
    def loadedAnew(): Snapshot = {
      val known = NamedTable.load(session, name, statement).deltaLog
      DeltaLog.invalidateCache(session, known.dataPath)
      NamedTable.snapshot(session, NamedTable.load(session, name, statement), statement)
    }
    val derived = new DerivedFiles(loadedAnew(), name)
    replaced.fold(derived.deleteChecksums())(derived.deleteSince)
    val now = loadedAnew()
    // Last, so that statements which run meanwhile leave nothing that was read before.
    Coordinators.forget(now.deltaLog)
    Row(now.version, new CommitLog(now).info(now.version).flatMap(Operations.name).orNull)
  }
}
