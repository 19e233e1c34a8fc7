package org.apache.spark.sql.delta.interlock.transaction

import org.apache.spark.sql.delta.DeltaTableReadPredicate
import org.apache.spark.sql.delta.interlock.judging.{MatchedReads, MatchedScan}
import org.apache.spark.sql.delta.stats.DeltaScan

/** What a statement reads of its table, beyond the predicates and files that Delta tracks: what each
  * scan is for, and reads that are no scans.
  */
final class StatementReads private[transaction] {

  /** Whether reads count. Those by which the statement is judged before it writes do not. */
  @volatile private var count = true

  private var ofNextScan = Option.empty[MatchedReads]

  /** The scans of the statement's queries, with their predicates. */
  private var planned = Vector.empty[(DeltaScan, DeltaTableReadPredicate)]

  private var ofMatches = Vector.empty[MatchedScan]

  @volatile private var untracked = false

  /** Tells what the next scan of the table is for. */
  def nextScanIsFor(reads: MatchedReads): Unit = ofNextScan = Some(reads)

  /** Tells what a scan is for. */
  def scanIsFor(scan: DeltaScan, reads: MatchedReads): Unit =
    for ((known, read) <- planned if count && (known eq scan))
      ofMatches :+= MatchedScan(read, reads)

  /** Tells that the statement reads the table in a way that Delta does not track; that counts as a
    * read of the whole table.
    */
  def addUntracked(): Unit = if (count) untracked = true

  private[transaction] def areUntracked: Boolean = untracked

  private var batch = Option.empty[Long]

  /** Tells that the statement writes a micro-batch that has read a version of the table. */
  private[transaction] def addBatch(version: Long): Unit = {
    batch = Some(version)
    addUntracked()
  }

  /** The version that its micro-batch has read, if it reads the table. */
  private[transaction] def ofBatch: Option[Long] = batch

  /** The scans of which only matching rows count. */
  private[transaction] def matched: Seq[MatchedScan] = ofMatches

  private[transaction] def counted(read: => Unit): Unit = if (count) read

  private[transaction] def uncounted[A](read: => A): A = {
    count = false
    try read
    finally count = true
  }

  /** Delta has tracked the predicate of the next scan. */
  private[transaction] def tracked(predicate: Option[DeltaTableReadPredicate]): Unit = {
    for (reads <- ofNextScan; read <- predicate) ofMatches :+= MatchedScan(read, reads)
    ofNextScan = None
  }

  /** Delta has planned a scan with the predicate that it tracked last. */
  private[transaction] def planned(
      scan: DeltaScan,
      predicate: Option[DeltaTableReadPredicate]
  ): Unit = counted(planned ++= predicate.map(scan -> _))
}
