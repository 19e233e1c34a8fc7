package org.apache.spark.sql.delta.interlock.compaction

import io.interlock.rules.OperationClass
import io.interlock.spark.commits.CommitTags
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.OptimisticTransaction
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.types._

/** The row that a compaction returns: the files and rows that were committed. A rebase may have
  * made them fewer than planned.
  */
private[interlock] object CompactResult {
  val schema: StructType = new StructType()
    .add("version", LongType)
    .add("class", StringType, nullable = false)
    .add("files_in", LongType, nullable = false)
    .add("files_out", LongType, nullable = false)
    .add("bytes_in", LongType, nullable = false)
    .add("bytes_out", LongType, nullable = false)
    .add("rows", LongType, nullable = false)
    .add("rows_purged", LongType, nullable = false)
    .add("winners", ArrayType(LongType, containsNull = false), nullable = false)

  /** The row if there was nothing to rewrite and no version was made. */
  def nothing(operationClass: OperationClass): Row =
    Row(null, operationClass.name, 0L, 0L, 0L, 0L, 0L, 0L, Seq.empty[Long])

  def of(
      transaction: OptimisticTransaction,
      planned: Seq[Rewritten],
      operationClass: OperationClass
  ): Row = {
    val committed = transaction.getCommitted.get
    val actions = committed.committedActions
    val added = actions.collect { case add: AddFile => add }
    val removed = actions.collect { case remove: RemoveFile => remove }
    val paths = removed.map(_.path).toSet
    val purged = planned.flatMap(_.inputs).filter(input => paths(input.path))
      .flatMap(input => Option(input.deletionVector)).map(_.cardinality).sum
    val tags = actions.collectFirst { case info: CommitInfo => info }.flatMap(_.tags)
    Row(
      committed.committedVersion,
      operationClass.name,
      removed.size.toLong,
      added.size.toLong,
      removed.flatMap(_.size).sum,
      added.map(_.size).sum,
      added.flatMap(_.numPhysicalRecords).sum,
      purged,
      CommitTags.winners(tags.getOrElse(Map.empty)).map(_.version)
    )
  }
}
