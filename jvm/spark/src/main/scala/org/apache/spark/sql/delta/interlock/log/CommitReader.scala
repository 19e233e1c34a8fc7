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
  * A storage that does not answer can hold a read for minutes, so none waits for another table's.
  */
private[interlock] object CommitReader {
  private val MostAtOnce = 8
  private val readers = ExecutionContext.fromExecutorService(
    ThreadUtils.newDaemonCachedThreadPool("interlock-read-commits")
  )

  private val parsed =
    CacheBuilder.newBuilder().weakKeys().softValues().build[CommitBody, Seq[Action]]()

  /** Reads commit files, in their order. */
  def read(deltaLog: DeltaLog, files: Seq[FileStatus]): Seq[CommitBody] = {
    val conf = deltaLog.newDeltaHadoopConf()
    def body(file: FileStatus) =
      CommitBody(FileNames.deltaVersion(file), file, deltaLog.store.read(file, conf))
    files.grouped(MostAtOnce).flatMap { some =>
      val bodies = Future.traverse(some)(file => Future(body(file))(readers))(implicitly, readers)
      Await.result(bodies, Duration.Inf)
    }.toVector
  }

  def summary(body: CommitBody): WinningCommitSummary =
    new WinningCommitSummary(
      parsed.get(body, () => body.lines.map(Action.fromJson)),
      body.file,
      readTimeMs = 0
    )
}
