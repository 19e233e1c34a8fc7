package io.interlock.spark.procedures

import io.interlock.spark.commits.{Coordinators, Operations}
import io.interlock.spark.history.NamedTable
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.interlock.log.CommitLog
import org.apache.spark.sql.types.{LongType, StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** Takes the log of a table as it is, after another writer has replaced a commit of this application
  * or the table was put back from a backup.
  */
object LogRepair {
  val schema: StructType = new StructType().add("version", LongType).add("operation", StringType)

  /** @param statement
    *   what asks, for errors
    * @return
    *   the last commit, on top of which the next is made
    */
  def run(session: SparkSession, name: String, statement: String): Row = {
    DeltaLog.invalidateCache(session, NamedTable.load(session, name, statement).deltaLog.dataPath)
    val now = NamedTable.snapshot(session, NamedTable.load(session, name, statement), statement)
    Coordinators.forget(now.deltaLog)
    Row(now.version, new CommitLog(now).info(now.version).flatMap(Operations.name).orNull)
  }
}
