package org.apache.spark.sql.delta.interlock.judging

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.{AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}

/** The files of a table, in a subquery whose command has not begun its transaction.
  *
  * Delta plans the scans of a whole statement when it sees the statement's plan. For the subqueries of
  * an UPDATE or MERGE that is before their transaction begins: at a version of their own, and unknown to
  * the transaction. It does not recognise the scans of this index; [[ReadsInTransaction]] puts `table`
  * back where the transaction plans its queries.
  */
final case class UnplannedScan(table: TahoeLogFileIndex)
    extends TahoeFileIndex(table.spark, table.deltaLog, table.path) {
  override def matchingFiles(partitions: Seq[Expression], data: Seq[Expression]): Seq[AddFile] =
    table.matchingFiles(partitions, data)
  override def inputFiles: Array[String] = table.inputFiles
  override def refresh(): Unit = table.refresh()
  override def sizeInBytes: Long = table.sizeInBytes
  override def version: Long = table.version
  override def metadata: Metadata = table.metadata
  override def protocol: Protocol = table.protocol
  override def dataPath: Path = table.dataPath
  override def logPath: Path = table.logPath
  override protected[delta] def numOfFilesIfKnown: Option[Long] = table.numOfFilesIfKnown
  override protected[delta] def sizeInBytesIfKnown: Option[Long] = table.sizeInBytesIfKnown
}
