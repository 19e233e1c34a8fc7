package org.apache.spark.sql.delta.interlock.rebase

import java.io.FileNotFoundException

import io.interlock.rules.Verdict
import io.interlock.rules.rebase._
import io.interlock.spark.compaction.Lineage
import io.interlock.spark.properties.TableProperties
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.{
  CurrentTransactionInfo,
  DeletionVectorsTableFeature,
  WinningCommitSummary
}

/** Rebases one attempt over one winner by changing deletion vectors: translates Delta's actions for
  * [[Rebases]], and its result back. Reads and writes deletion vectors; of data files at most the row
  * ids.
  *
  * A Left is the reason why the rebase cannot be proved safe; for BY_ROWS what the winner did, as a
  * clause.
  *
  * @param rowIds
  *   the row ids of a compaction's inputs and outputs
  */
final private[interlock] class RowRebase(
    vectors: RowVectors,
    info: CurrentTransactionInfo,
    winner: WinningCommitSummary,
    rowIds: (Seq[RemoveFile], Seq[AddFile]) => RowIds
) {
  private type Rebased = Either[String, CurrentTransactionInfo]

  private val rebases = new Rebases(vectors.rowsOf)
  private val removes = info.actions.collect { case remove: RemoveFile => remove }
  private val adds = info.actions.collect { case add: AddFile => add }

  def apply(verdict: Verdict): Rebased =
    try
      verdict match {
        case Verdict.RemapRows => remapRows
        case Verdict.RebaseCompaction => rebaseCompaction
        case Verdict.Supersede => supersede
        case Verdict.ByRows => uniteRows
        case other => throw new IllegalArgumentException(s"$other maps no rows.")
      }
    catch {
      case _: FileNotFoundException if verdict == Verdict.ByRows =>
        Left(Rebases.inOneFile(RowVectors.Gone))
      case _: FileNotFoundException => Left(RowVectors.Gone)
    }

  /** The attempt's dead rows of compacted files become dead rows of the compaction's outputs. */
  private def remapRows: Rebased = {
    val compacted = winner.removedFiles.map(_.path).toSet
    val changes = changesOf(removes.filter(remove => compacted(remove.path)), adds)
    if (changes.isEmpty) Right(info)
    else
      for {
        remapped <- following(winner.addedFiles).remapRows(changes, winnersCompaction)
        marked <- mark(winner.addedFiles, remapped.dead)
      } yield changing(remapped.replaced, marked)
  }

  /** The attempt's dead rows of files in which the winner marked others are added to the winner's. */
  private def uniteRows: Rebased = {
    val theirs = winnersChanges
    if (theirs.isEmpty) Right(info)
    else
      for {
        dead <- rebases.uniteRows(changesOf(removes, adds), theirs)
        marked <- mark(winner.addedFiles, dead).left.map(Rebases.inOneFile)
      } yield changing(dead.keySet, marked)
  }

  /** The attempt with other rows dead.
    *
    * @param replaced
    *   the files that the attempt no longer removes and adds
    * @param marked
    *   the winner's files with their new vectors, None if no row is alive
    */
  private def changing(
      replaced: Set[String],
      marked: Map[AddFile, Option[DeletionVectorDescriptor]]
  ): CurrentTransactionInfo = {
    val outputs = marked.toSeq.flatMap {
      case (output, None) => Seq(output.remove)
      case (output, Some(vector)) =>
        val (add, remove) = output.removeRows(vector, updateStats = true)
        Seq(remove, add)
    }
    val kept = info.actions.filter {
      case file: FileAction if !file.isInstanceOf[AddCDCFile] => !replaced(file.path)
      case _ => true
    }
    Metrics.recounted(info, kept ++ outputs)
  }

  /** The winner's dead rows of this compaction's inputs become dead rows of its outputs. */
  private def rebaseCompaction: Rebased = {
    val changes = winnersChanges
    if (changes.isEmpty) Right(info)
    else {
      val before = attemptsCompaction
      for {
        after <- following(adds).rebaseCompaction(before, changes)
        grown = after.outputs.diff(before.outputs).map(output => output.path -> output.dead).toMap
        marked <- mark(adds, grown)
      } yield {
        val changed = changes.map(_.path).toSet
        val winnerAdds = winner.addedFiles.map(add => add.path -> add).toMap
        val outputs = marked.map { case (add, vector) => add.path -> vector }
        val actions = info.actions.flatMap {
          case remove: RemoveFile if changed(remove.path) =>
            winnerAdds.get(remove.path)
              .map(_.removeWithTimestamp(dataChange = false).copy(tags = remove.tags))
          case add: AddFile if outputs.contains(add.path) =>
            outputs(add.path).map(vector =>
              add.copy(deletionVector = vector).withoutTightBoundStats
            )
          case other => Some(other)
        }
        Metrics.recounted(info, actions)
      }
    }
  }

  /** This compaction of the whole scope removes the files that the winner's compaction made of its
    * inputs.
    */
  private def supersede: Rebased = {
    val inputs = removes.map(_.path).toSet
    if (!winner.removedFiles.exists(file => inputs(file.path))) Right(info)
    else {
      val attempt = attemptsCompaction
      val tokens =
        winner.addedFiles.map(add => add.path -> RowVectors.token(add.deletionVector)).toMap
      rebases.supersede(attempt, winnersCompaction, tokens).map { after =>
        val replaced = after.inputs.keySet.diff(attempt.inputs.keySet)
        val moving = Lineage.moving(after.outputs.map(output => output.path -> output.segments))
        val kept = info.actions.filter {
          case remove: RemoveFile => after.inputs.contains(remove.path)
          case _ => true
        }
        val removed = winner.addedFiles.filter(add => replaced(add.path))
          .map(add => moving(add.removeWithTimestamp(dataChange = false)))
        Metrics.recounted(info, kept ++ removed)
      }
    }
  }

  /** Follows rows of files that the attempt removes into the files of a compaction. */
  private def following(outputs: Seq[AddFile]) =
    new Rebases(vectors.rowsOf, rowIds(removes, outputs))

  private def winnersCompaction = compactionOf(winner.removedFiles, winner.addedFiles)
  private def attemptsCompaction = compactionOf(removes, adds)

  /** New vectors for the files in which rows are dead; None for a file without live rows. */
  private def mark(
      files: Seq[AddFile],
      dead: Map[String, RowSet]
  ): Either[String, Map[AddFile, Option[DeletionVectorDescriptor]]] = {
    val (empty, partly) =
      files.filter(add => dead.contains(add.path)).partition(add =>
        add.numPhysicalRecords.contains(dead(add.path).size)
      )
    val excluding = TableProperties.excludesVectors(info.metadata.configuration)
    if (partly.nonEmpty && !info.protocol.isFeatureSupported(DeletionVectorsTableFeature))
      Left("the table does not support deletion vectors (table feature deletionVectors)")
    else if (partly.nonEmpty && excluding.nonEmpty)
      Left(s"the table's ${excluding.head._1} excludes deletion vectors")
    else {
      val written = vectors.write(partly.map(add => dead(add.path)))
      Right(partly.zip(written.map(Option(_))).toMap ++ empty.map(_ -> None))
    }
  }

  /** The winner's changes of files that the attempt removes as well. */
  private def winnersChanges: Seq[FileChange] = {
    val removed = removes.map(_.path).toSet
    changesOf(winner.removedFiles.filter(file => removed(file.path)), winner.addedFiles)
  }

  private def changesOf(removes: Seq[RemoveFile], adds: Seq[AddFile]): Seq[FileChange] = {
    val after = adds.map(add => add.path -> RowVectors.token(add.deletionVector)).toMap
    removes.map(remove =>
      FileChange(remove.path, RowVectors.token(remove.deletionVector), after.get(remove.path))
    )
  }

  /** A compaction, from its actions. Outputs have no segments where no tag says whence rows came. */
  private def compactionOf(removes: Seq[RemoveFile], adds: Seq[AddFile]): Compaction = {
    val lineage = Lineage.of(removes)
    val inputs = removes.map(file => file.path -> RowVectors.token(file.deletionVector))
    val outputs = adds.map { add =>
      val segments = lineage.getOrElse(add.path, Nil)
      Output(add.path, add.numPhysicalRecords.getOrElse(0), deadRows(add), segments)
    }
    Compaction(inputs.toMap, outputs)
  }

  private def deadRows(add: AddFile): RowSet =
    vectors.rowsOf(RowVectors.token(add.deletionVector))
}
