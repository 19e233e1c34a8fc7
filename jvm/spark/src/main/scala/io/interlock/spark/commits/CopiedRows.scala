package io.interlock.spark.commits

import scala.util.Try

import org.apache.spark.sql.delta.actions._

/** Rows that DML without deletion vectors writes anew, as they were, beside those that it changes. */
object CopiedRows {
  private val Write = "WRITE"

  /** Operations that may copy; others write new rows only. */
  private val Dml = Set("DELETE", "UPDATE", "MERGE")
  private val Replaces = Set("predicate", "replaceOnCond", "replaceUsingCols")
  private val Metrics = Seq("numCopiedRows", "numTargetRowsCopied")

  /** How many a commit copied, by its metrics; None where they do not tell. */
  def of(info: Option[CommitInfo], actions: Seq[FileAction]): Option[Long] = {
    val metrics = info.flatMap(_.operationMetrics).getOrElse(Map.empty)
    def metric(name: String) = metrics.get(name).flatMap(text => Try(text.toLong).toOption)
    val told = Metrics.flatMap(metric).headOption
    val copied =
      if (!info.exists(_.operation == Write)) told
      else
        for {
          // Counts rows, too, of files that only got a deletion vector; the query's are the others.
          more <- told
          output <- metric("numOutputRows")
          written <- rowsInNewFiles(actions)
        } yield written - (output - more)
    copied.orElse(Option.when(!info.exists(mayCopy))(0L))
  }

  /** None where one of the files does not tell. */
  def liveRows(files: Seq[AddFile]): Option[Long] = {
    val rows = files.map(_.numLogicalRecords)
    Option.when(rows.forall(_.nonEmpty))(rows.flatten.sum)
  }

  private def rowsInNewFiles(actions: Seq[FileAction]): Option[Long] = {
    val removed = actions.collect { case remove: RemoveFile => remove.path }.toSet
    liveRows(actions.collect {
      case add: AddFile if add.dataChange && !removed(add.path) => add
    })
  }

  private def mayCopy(info: CommitInfo): Boolean =
    Dml(info.operation) ||
      info.operation == Write && info.operationParameters.keys.exists(Replaces)
}
