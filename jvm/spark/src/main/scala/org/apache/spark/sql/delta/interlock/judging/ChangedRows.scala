package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.rebase.RowSet
import org.apache.spark.sql.delta.actions.{AddFile, RemoveFile}
import org.apache.spark.sql.delta.interlock.rebase.RowVectors

/** The rows that a commit changes, as files with deletion vectors that can be read.
  *
  * @param removes
  *   the files that it removes
  * @param adds
  *   the files that it adds
  * @param isTold
  *   tells whether the partition of a file that it removes is known from the log
  */
final private[interlock] class ChangedRows(
    removes: Seq[RemoveFile],
    adds: Seq[AddFile],
    vectors: RowVectors,
    isTold: RemoveFile => Boolean
) {
  private val removed = removes.filter(_.dataChange).map { remove =>
    val file = ChangedRows.asAdded(remove)
    file.path -> (if (isTold(remove)) file else file.copy(partitionValues = null))
  }.toMap
  private val addedAgain = adds.map(add => add.path -> add).toMap

  /** Files whose live rows are new in the table: not the files of a compaction, but rows that a
    * RESTORE brings back.
    */
  def added: Seq[AddFile] = adds.filter(_.dataChange).flatMap { add =>
    removed.get(add.path).fold(Option(add))(remove => between(add, add, remove))
  }

  /** Files whose live rows are those that it removes or marks dead. */
  def dead: Seq[AddFile] = removed.values.toSeq.flatMap { before =>
    addedAgain.get(before.path).fold(Option(before))(after => between(after, before, after))
  }

  /** Files whose live rows are those that another job removes or marks dead as well.
    *
    * @param others
    *   the files that the other job adds
    * @param removes
    *   the paths of those that it removes
    * @param copyNone
    *   whether both jobs changed all rows of the files that they removed as a whole
    */
  def deadInBoth(
      others: Seq[AddFile],
      removes: Set[String],
      copyNone: => Boolean
  ): Seq[AddFile] = {
    val marked = others.map(add => add.path -> add).toMap
    dead.filter(file => removes(file.path)).flatMap { file =>
      marked.get(file.path) match {
        case Some(after) if addedAgain.contains(file.path) || copyNone =>
          between(after, file, after)
        case None if copyNone => Some(file)
        case _ => None
      }
    }
  }

  /** The rows of a file that are alive in `alive` and dead in `dead`; if the file's row count is
    * not known, all rows that are alive in `alive`.
    */
  private def between(file: AddFile, alive: AddFile, dead: AddFile): Option[AddFile] = {
    val rows = rowsOf(dead).minus(rowsOf(alive))
    if (rows.isEmpty) None
    else
      Some(file.numPhysicalRecords.fold(alive)(count =>
        file.copy(deletionVector = RowVectors.inMemory(RowSet.range(0, count).minus(rows)))
      ))
  }

  private def rowsOf(file: AddFile): RowSet = vectors.rowsOf(RowVectors.token(file.deletionVector))
}

private[judging] object ChangedRows {

  /** A removed file as one that can be read. */
  def asAdded(remove: RemoveFile): AddFile = AddFile(
    path = remove.path,
    partitionValues = remove.partitionValues,
    size = remove.size.getOrElse(0L),
    modificationTime = 0,
    dataChange = true,
    deletionVector = remove.deletionVector,
    baseRowId = remove.baseRowId,
    defaultRowCommitVersion = remove.defaultRowCommitVersion
  )
}
