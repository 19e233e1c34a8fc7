package org.apache.spark.sql.delta.interlock.block

import scala.collection.immutable.VectorMap

import org.apache.spark.sql.delta.actions._

/** The changes that the statements of a block have made to a table, as those of one commit.
  *
  * @param removed
  *   the table's files that the block has removed, by path, each as the first statement removed it:
  *   with the deletion vector that the table knows
  * @param added
  *   the files that are live for the block and not for others, by path
  * @param changes
  *   the files of the change feed, of each statement
  * @param batches
  *   the numbered batches that were written, by application
  * @param metadata
  *   the metadata, if the block has taken values of identity columns
  */
final private[block] case class NetActions(
    removed: VectorMap[String, RemoveFile] = VectorMap.empty,
    added: VectorMap[String, AddFile] = VectorMap.empty,
    changes: Vector[AddCDCFile] = Vector.empty,
    batches: VectorMap[String, SetTransaction] = VectorMap.empty,
    metadata: Option[Metadata] = None
) {

  /** The changes with those of one more statement. */
  def after(statement: Seq[Action]): NetActions = {
    val (ofBlock, ofTable) = statement.collect { case file: RemoveFile => file }
      .partition(file => added.contains(file.path))
    NetActions(
      removed ++ ofTable.map(file => file.path -> file),
      added.removedAll(ofBlock.map(_.path)) ++
        statement.collect { case file: AddFile => file.path -> file },
      changes ++ statement.collect { case file: AddCDCFile => file },
      batches ++ statement.collect { case batch: SetTransaction => batch.appId -> batch },
      statement.collectFirst { case set: Metadata => set }.orElse(metadata)
    )
  }

  def isEmpty: Boolean = paths.isEmpty && batches.isEmpty && metadata.isEmpty

  /** The files whose entries differ from those of the table. */
  def paths: Set[String] = removed.keySet ++ added.keySet

  /** The actions to commit, without those of the change feed. New files have no row ids yet: those that a statement has seen in the
    * block may belong to rows of others by now.
    *
    * @param highestRowId
    *   the highest row id that the table has given, when the block began
    */
  def actions(highestRowId: Long): Seq[Action] =
    batches.values.toSeq ++ removed.values ++ added.values.map { file =>
      if (file.baseRowId.exists(_ > highestRowId))
        file.copy(baseRowId = None, defaultRowCommitVersion = None)
      else file
    }
}
