package org.apache.spark.sql.delta.interlock.commit

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path => LocalPath}

import scala.collection.concurrent.TrieMap
import scala.util.Try

import io.interlock.coordinator.QuickLocalFileSystem
import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.util.FileNames

/** The files that one transaction wrote and that nothing refers to unless it commits.
  *
  * These are the files that its `writeFiles` returned, and the deletion vectors that its own pairs
  * of RemoveFile and AddFile extended. A file that an AddFile merely names is not one of them,
  * since DML with deletion vectors, RESTORE and CLONE add live files again.
  */
final private[interlock] class StagedFiles(deltaLog: DeltaLog) extends Logging {
  private val sizes = TrieMap.empty[Path, Long]

  /** Remembers the files that `writeFiles` returned; compactions call this on several threads. */
  def written(files: Seq[FileAction]): Unit =
    sizes ++= files.map(file => absolute(file.path) -> file.getFileSize)

  def written(path: Path): Unit = sizes += path -> 0L

  /** Takes over the files of another transaction.
    *
    * @param actions
    *   its actions, which may have extended deletion vectors
    */
  def adopt(other: StagedFiles, actions: Seq[Action]): Unit = {
    sizes ++= other.sizes
    newDeletionVectors(actions).foreach(written(_: Path))
  }

  /** Deletes the files to which none of these actions refers. */
  def deleteAllBut(actions: Seq[Action]): Unit = {
    val used = actions.collect { case file: FileAction =>
      absolute(file.path) +: onDisk(Option(file.deletionVector)).toSeq
    }.flatten
    sizes --= used
    if (sizes.nonEmpty) deleteAll(Nil): Unit
  }

  /** The size of the data files, in bytes. */
  def bytes: Long = sizes.values.sum

  /** The number of these files that are gone.
    *
    * @param actions
    *   the actions that the transaction wants to commit
    */
  def missing(actions: Seq[Action]): Int = {
    val fs = deltaLog.dataPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    (sizes.keySet ++ newDeletionVectors(actions)).count(!fs.exists(_))
  }

  /** Deletes the files. Those that cannot be deleted are left to VACUUM.
    *
    * @param actions
    *   the actions that the failed transaction wanted to commit
    * @param ofNewTable
    *   whether the transaction was to create the table: then its empty folders are deleted as well
    * @return
    *   the number of files that are left
    */
  def deleteAll(actions: Seq[Action], ofNewTable: Boolean = false): Int = {
    val fs = deltaLog.dataPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    val files = sizes.keySet.toSet ++ newDeletionVectors(actions)
    val left = files.count { path =>
      def delete = Try(
        if (!fs.delete(path, false) && fs.exists(path)) throw new IOException(s"$path stays")
      )
      val failure = delete.orElse(delete).failed.toOption
      failure.foreach(logWarning(s"Left to VACUUM: $path", _))
      failure.nonEmpty
    }
    if (ofNewTable) deleteEmptyFolders(files.flatMap(foldersOf))
    sizes.clear()
    left
  }

  /** Deletes the empty folders of a table that was not created: those of partitions and of the log.
    * Otherwise they would make the next CREATE TABLE fail. Only on a local disk, which refuses to
    * delete a folder into which another job has just put a file.
    */
  private def deleteEmptyFolders(ofPartitions: Set[Path]): Unit = {
    val ofLog = Seq(FileNames.commitDirPath(deltaLog.logPath), deltaLog.logPath)
    val deepestFirst = ofPartitions.toSeq.sortBy(-_.depth)
    (deepestFirst ++ ofLog).filter(QuickLocalFileSystem.isLocal).foreach(folder =>
      Try(Files.delete(LocalPath.of(folder.toUri.getPath)))
    )
  }

  /** The folders of a file below that of the table. */
  private def foldersOf(file: Path): Seq[Path] = Iterator.iterate(file.getParent)(_.getParent)
    .takeWhile(folder => folder != null && folder.depth > deltaLog.dataPath.depth).toSeq

  private def newDeletionVectors(actions: Seq[Action]): Set[Path] = {
    val before = actions.collect {
      case remove: RemoveFile => remove.path -> Option(remove.deletionVector)
    }.toMap
    val grown = actions.collect {
      case add: AddFile if before.contains(add.path) => onDisk(Option(add.deletionVector))
    }.flatten.toSet
    grown -- before.values.flatMap(onDisk)
  }

  private def onDisk(vector: Option[DeletionVectorDescriptor]): Option[Path] =
    vector.filter(_.isOnDisk).map(_.absolutePath(deltaLog.dataPath))

  private def absolute(path: String): Path = {
    val file = new Path(new URI(path))
    if (file.isAbsolute) file else new Path(deltaLog.dataPath, file)
  }
}
