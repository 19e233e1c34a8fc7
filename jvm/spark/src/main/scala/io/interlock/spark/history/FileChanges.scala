package io.interlock.spark.history

import io.interlock.spark.commits.CopiedRows
import org.apache.spark.sql.delta.actions._

/** Files and rows that a version's commit adds and removes, of the partitions that are asked for.
  *
  * Rows are live rows, and only those that logically came or went: a file that is in the table
  * before and after counts with the difference, rows that DML copied into another file do not count,
  * nor does anything that the commit marks as no change of data.
  *
  * @param filesAdded
  *   files that were not in the table before, whatever they are for
  * @param touches
  *   whether any file of these partitions is named
  * @param rewrites
  *   whether rows moved between files
  * @param added
  *   rows in new files and rows that came back into old ones; None where the commit does not say
  * @param removed
  *   the same of rows that went, but for the files in `unknown`
  * @param unknown
  *   removed files whose number of rows the commit does not give, and how many rows were dead in
  *   each
  */
final private[spark] case class FileChanges(
    filesAdded: Long,
    filesRemoved: Long,
    touches: Boolean,
    rewrites: Boolean,
    private val added: Option[Long],
    private val removed: Long,
    private val copied: Option[Long],
    unknown: Map[String, Long]
) {
  def rowsIn: Option[Long] = counted(added)

  def rowsOut: Option[Long] = if (unknown.isEmpty) counted(Some(removed)) else None

  /** Whether at least one row came or went; unknown numbers count as yes. */
  def changesData: Boolean = !(rowsIn.contains(0L) && rowsOut.contains(0L))

  /** @param records
    *   rows in a removed file, dead ones included
    */
  def knowing(path: String, records: Long): FileChanges =
    unknown.get(path).fold(this) { dead =>
      copy(removed = removed + records - dead, unknown = unknown - path)
    }

  private def counted(rows: Option[Long]): Option[Long] =
    rows.zip(copied).map { case (all, same) => all - same }.filter(_ >= 0)
}

private[spark] object FileChanges {

  def of(
      info: Option[CommitInfo],
      actions: Seq[FileAction],
      inScope: (FileAction, Option[CommitInfo]) => Boolean
  ): FileChanges = {
    def selects(file: FileAction) = inScope(file, info)
    val selected = actions.filter(selects)
    val adds = selected.collect { case add: AddFile => add }
    val removes = selected.collect { case remove: RemoveFile => remove }
    // Without a RemoveFile, an AddFile that changes no data describes a file that is there already.
    val described = removes.isEmpty && adds.nonEmpty && adds.forall(!_.dataChange)
    val both = adds.map(_.path).toSet.intersect(removes.map(_.path).toSet)
    val newFiles = adds.filterNot(add => both(add.path))
    val gone = removes.filterNot(remove => both(remove.path))
    val changedNew = newFiles.filter(_.dataChange)
    val changedGone = gone.filter(_.dataChange)
    val marked = differences(adds, removes, both)
    val copied =
      if (changedNew.nonEmpty && removes.exists(_.dataChange))
        CopiedRows.of(info, actions).filter(_ == 0L || actions.forall(selects))
      else Some(0L)
    FileChanges(
      filesAdded = if (described) 0 else newFiles.size.toLong,
      filesRemoved = gone.size.toLong,
      touches = selected.nonEmpty,
      rewrites = !copied.contains(0L) || gone.size > changedGone.size,
      added = CopiedRows.liveRows(changedNew).map(_ + marked.filter(_ > 0).sum),
      removed = -marked.filter(_ < 0).sum + changedGone.flatMap(_.numLogicalRecords).sum,
      copied = copied,
      unknown = changedGone
        .collect {
          case remove if remove.numLogicalRecords.isEmpty =>
            remove.path -> remove.numDeletedRecords
        }
        .toMap
    )
  }

  /** By how many live rows each file grew that is in the table before and after. */
  private def differences(
      adds: Seq[AddFile],
      removes: Seq[RemoveFile],
      both: Set[String]
  ): Seq[Long] = {
    val before = removes.filter(_.dataChange).map(file => file.path -> file.numDeletedRecords).toMap
    adds.filter(add => both(add.path) && add.dataChange)
      .flatMap(add => before.get(add.path).map(_ - add.numDeletedRecords))
  }
}
