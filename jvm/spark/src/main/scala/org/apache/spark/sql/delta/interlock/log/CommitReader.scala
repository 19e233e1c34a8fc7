package org.apache.spark.sql.delta.interlock.log

import scala.concurrent.duration.Duration
import scala.concurrent.{Await, ExecutionContext, Future}

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.CommitBody
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.delta.actions.Action
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, WinningCommitSummary}
import org.apache.spark.util.ThreadUtils

/** Reads the commits that others are judged against, in parallel; each is parsed once per process.
  */
private[interlock] object CommitReader {
  private val readers = ExecutionContext.fromExecutorService(
    ThreadUtils.newDaemonFixedThreadPool(8, "interlock-read-commits")
  )

  private val parsed =
    CacheBuilder.newBuilder().weakKeys().softValues().build[CommitBody, Seq[Action]]()

  /** Reads commit files, in their order. */
  def read(deltaLog: DeltaLog, files: Seq[FileStatus]): Seq[CommitBody] = {
    val conf = deltaLog.newDeltaHadoopConf()
    val bodies = files.map(file =>
      Future(
        CommitBody(FileNames.deltaVersion(file), file, deltaLog.store.read(file, conf))
      )(readers)
    )
    Await.result(Future.sequence(bodies)(implicitly, readers), Duration.Inf)
  }

  def summary(body: CommitBody): WinningCommitSummary =
    new WinningCommitSummary(
      parsed.get(body, () => body.lines.map(Action.fromJson)),
      body.file,
      readTimeMs = 0
    )
}
