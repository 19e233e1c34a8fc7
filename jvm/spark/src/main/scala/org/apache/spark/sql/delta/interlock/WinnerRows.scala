package org.apache.spark.sql.delta.interlock

import io.interlock.rules.rebase.RowSet
import org.apache.spark.sql.delta.WinningCommitSummary
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}

/** The rows that a winner changed, as files to be read. */
final private[interlock] class WinnerRows(winner: WinningCommitSummary, vectors: RowVectors) {
  private val removed = winner.removedFiles.map(_.path).toSet
  private val addedAgain =
    winner.addedFiles.filter(add => removed(add.path)).map(add => add.path -> add).toMap

  /** Files with rows that were not in the table before; those of a compaction were. */
  def added: Seq[AddFile] =
    winner.addedFiles.filter(add => add.dataChange && !removed(add.path))

  /** Files whose live rows are those that the winner removed or marked dead. */
  def dead: Seq[AddFile] = winner.removedFiles.filter(_.dataChange).flatMap { remove =>
    addedAgain.get(remove.path).fold(Option(whole(remove)))(killed(remove, _))
  }

  /** Its partition is null where the winner does not tell it. */
  private def whole(remove: RemoveFile): AddFile = AddFile(
    path = remove.path,
    partitionValues = remove.partitionValues,
    size = remove.size.getOrElse(0L),
    modificationTime = 0,
    dataChange = true,
    deletionVector = remove.deletionVector
  )

  /** Without the count of its rows, all that were alive. */
  private def killed(remove: RemoveFile, add: AddFile): Option[AddFile] = {
    val rows = rowsOf(add).minus(rowsOf(whole(remove)))
    if (rows.isEmpty) None
    else
      Some(add.numPhysicalRecords.fold(add.copy(deletionVector = remove.deletionVector))(count =>
        add.copy(deletionVector = RowVectors.inMemory(RowSet.range(0, count).minus(rows)))
      ))
  }

  private def rowsOf(file: AddFile): RowSet = vectors.rowsOf(RowVectors.token(file.deletionVector))
}
