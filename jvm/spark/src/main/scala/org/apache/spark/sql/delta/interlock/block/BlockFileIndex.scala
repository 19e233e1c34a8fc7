package org.apache.spark.sql.delta.interlock.block

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.files.TahoeLogFileIndex

/** The files of a table as an open block sees them; once the block is over, those of the table.
  *
  * @param state
  *   the number of the block's state of the table
  * @param snapshot
  *   gives the table as the block sees it now, or none
  */
final private[block] class BlockFileIndex(
    ofTable: TahoeLogFileIndex,
    val state: Long,
    snapshot: () => Option[Snapshot]
) extends IndexInState(ofTable, s"state $state") {
  override def getSnapshot: Snapshot = snapshot().getOrElse(super.getSnapshot)
}

/** The files of a table at the version that a run of its query reads. */
final private[block] class FixedFileIndex(ofTable: TahoeLogFileIndex, snapshot: Snapshot)
    extends IndexInState(ofTable, s"version ${snapshot.version}") {
  override protected def getSnapshotToScan: Snapshot = snapshot
}

/** The files of a table in one state, which equal those of no other state, nor those of the table.
  *
  * @param ofTable
  *   the files of the table
  */
sealed abstract private[block] class IndexInState(val ofTable: TahoeLogFileIndex, state: String)
    extends TahoeLogFileIndex(
      ofTable.spark,
      ofTable.deltaLog,
      new PathInState(ofTable.path, state),
      ofTable.snapshotAtAnalysis,
      ofTable.catalogTableOpt,
      ofTable.partitionFilters,
      ofTable.isTimeTravelQuery
    ) {
  override def equals(other: Any): Boolean = other match {
    case same: IndexInState => super.equals(same)
    case _ => false
  }
  override def hashCode: Int = super.hashCode
}

/** The path of a table in one state, as a block or a query sees it. It equals no path in another
  * state, nor that of the table. Spark takes plans of equal paths for equal: it would find rows in its
  * cache that another session or block has put there, and keep a scan that a rule replaces.
  */
final private class PathInState(path: Path, private val state: String) extends Path(path.toUri) {
  override def equals(other: Any): Boolean = other match {
    case same: PathInState => same.state == state && super.equals(same)
    case _ => false
  }
  override def hashCode: Int = state.hashCode
}
