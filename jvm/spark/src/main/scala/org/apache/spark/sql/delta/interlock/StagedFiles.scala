package org.apache.spark.sql.delta.interlock

import java.net.URI

import scala.collection.concurrent.TrieMap
import scala.util.Try

import org.apache.hadoop.fs.Path
import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions._

/** The files which one transaction made and which nothing refers to unless it commits.
  *
  * These are the files that its `writeFiles` returned and the deletion vectors that its own
  * RemoveFile/AddFile pairs grew; never a file that an AddFile merely names, since DML with deletion
  * vectors, RESTORE and CLONE add live files again.
  */
final private[interlock] class StagedFiles(deltaLog: DeltaLog) extends Logging {
  private val sizes = TrieMap.empty[Path, Long]

  /** Notes what `writeFiles` returned; compactions call it from several threads. */
  def written(files: Seq[FileAction]): Unit =
    sizes ++= files.map(file => absolute(file.path) -> file.getFileSize)

  def written(path: Path): Unit = sizes += path -> 0L

  /** The size of the data files, in bytes. */
  def bytes: Long = sizes.values.sum

  /** How many of them are gone.
    *
    * @param actions
    *   what the transaction wants to commit
    */
  def missing(actions: Seq[Action]): Int = {
    val fs = deltaLog.dataPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    (sizes.keySet ++ newDeletionVectors(actions)).count(!fs.exists(_))
  }

  /** Deletes them, best effort: what cannot be deleted is left to VACUUM.
    *
    * @param actions
    *   what the failed transaction wanted to commit
    */
  def deleteAll(actions: Seq[Action]): Unit = {
    val fs = deltaLog.dataPath.getFileSystem(deltaLog.newDeltaHadoopConf())
    (sizes.keySet ++ newDeletionVectors(actions)).foreach { path =>
      Try(fs.delete(path, false)).failed.foreach(logWarning(s"Left to VACUUM: $path", _))
    }
    sizes.clear()
  }

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
