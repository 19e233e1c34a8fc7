package org.apache.spark.sql.delta.interlock.judging

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.delta.actions.{AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.files.{TahoeFileIndex, TahoeLogFileIndex}

/** The files of a table in a subquery that the command's transaction has yet to plan.
  *
  * Delta plans all scans of a statement when it sees the statement's plan. For the subqueries of an
  * UPDATE or MERGE this is before their transaction begins: they could read another version, and
  * the transaction would not know of them. Delta does not recognise scans of this index, so it does
  * not plan them then. [[ReadsInTransaction]] puts `table` back when the transaction plans its
  * queries.
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
