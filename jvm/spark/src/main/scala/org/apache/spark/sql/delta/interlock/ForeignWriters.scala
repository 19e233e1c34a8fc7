package org.apache.spark.sql.delta.interlock

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.util.DeltaCommitFileProvider
import org.apache.spark.sql.delta.{DeltaHistoryManager, Snapshot}

/** Warns, once per table and JVM, where the last commit is that of a writer without Interlock: it is
  * told from ours, but nothing stops it.
  */
private[interlock] object ForeignWriters extends Logging {
  private val looked = ConcurrentHashMap.newKeySet[(Path, String)]()

  def warn(table: String, snapshot: Snapshot): Unit = {
    val log = snapshot.deltaLog
    if (snapshot.version >= 0 && looked.add((log.logPath, snapshot.metadata.id))) {
      val file = DeltaCommitFileProvider(snapshot).deltaFile(snapshot.version)
      DeltaHistoryManager.getCommitInfoOpt(log.store, file, log.newDeltaHadoopConf())
        .filterNot(info => CommitTags.areOurs(info.tags.getOrElse(Map.empty)))
        .foreach { info =>
          logWarning(
            s"Version ${snapshot.version} of $table was committed by a writer without Interlock " +
              s"(${info.engineInfo.getOrElse("it does not say which")}). Such a writer follows no " +
              "policy, and on a local disk it may overwrite commits: let all writers of the table " +
              "load Interlock."
          )
        }
    }
  }
}
