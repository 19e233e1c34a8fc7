package org.apache.spark.sql.delta.interlock.statement

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.delta.DeltaTableReadPredicate
import org.apache.spark.sql.delta.interlock.judging.{MatchedReads, MatchedScan}
import org.apache.spark.sql.delta.stats.DeltaScan

/** What a statement reads of its table, beyond the predicates and files that Delta tracks: what each
  * scan is for, and reads that are no scans.
  */
final class StatementReads private[interlock] {

  /** Whether reads count. Those by which the statement is judged before it writes do not. */
  @volatile private var count = true

  private var ofNextScan = Option.empty[MatchedReads]

  /** The scans of the statement's queries, with their predicates. */
  private var planned = Vector.empty[(DeltaScan, DeltaTableReadPredicate)]

  private var ofMatches = Vector.empty[MatchedScan]

  @volatile private var untracked = Set.empty[PlanRead]

  /** Tells what the next scan of the table is for. */
  def nextScanIsFor(reads: MatchedReads): Unit = ofNextScan = Some(reads)

  /** The partitions to which [[nextScanIn]] has confined the next scan of all rows. */
  private var partitions = Seq.empty[Expression]

  /** Tells that of the next scan of all rows only rows count that match these predicates on
    * partition columns.
    */
  def nextScanIn(predicates: Seq[Expression]): Unit = partitions = predicates

  /** The filters of a scan, with what is known of it. */
  private[interlock] def confined(filters: Seq[Expression]): Seq[Expression] =
    if (filters == Seq(TrueLiteral) && partitions.nonEmpty) partitions else filters

  /** Tells what a scan is for. */
  def scanIsFor(scan: DeltaScan, reads: MatchedReads): Unit =
    for ((known, read) <- planned if count && (known eq scan))
      ofMatches :+= MatchedScan(read, reads)

  /** Takes over scans of another transaction of the table, of which only matching rows count. */
  private[interlock] def take(matched: Seq[MatchedScan]): Unit = ofMatches ++= matched

  /** Tells of reads of the table that Delta does not track. */
  def add(reads: Seq[PlanRead]): Unit = counted(untracked ++= reads)

  private[interlock] def ofPlans: Set[PlanRead] = untracked

  private[interlock] def areUntracked: Boolean = untracked.nonEmpty

  /** The scans of which only matching rows count. */
  private[interlock] def matched: Seq[MatchedScan] = ofMatches

  private[interlock] def counted(read: => Unit): Unit = if (count) read

  private[interlock] def uncounted[A](read: => A): A = {
    count = false
    try read
    finally count = true
  }

  /** Delta has tracked the predicate of the next scan. */
  private[interlock] def tracked(predicate: Option[DeltaTableReadPredicate]): Unit = {
    for (reads <- ofNextScan; read <- predicate) ofMatches :+= MatchedScan(read, reads)
    ofNextScan = None
  }

  /** Delta has planned a scan with the predicate that it tracked last. */
  private[interlock] def planned(
      scan: DeltaScan,
      predicate: Option[DeltaTableReadPredicate]
  ): Unit = counted(planned ++= predicate.map(scan -> _))
}
