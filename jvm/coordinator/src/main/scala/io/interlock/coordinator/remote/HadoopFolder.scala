package io.interlock.coordinator

import java.io.{FileNotFoundException, InputStream, OutputStream}

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.hadoop.util.functional.FutureIO

/** A `_delta_log` on any file system of Hadoop. */
final private[coordinator] class HadoopFolder(log: TableLog) extends LogFolder {
  private lazy val fs: FileSystem = log.path.getFileSystem(log.conf)

  override def status(name: String): Option[FileStatus] =
    try Some(fs.getFileStatus(file(name)))
    catch { case _: FileNotFoundException => None }

  override def open(name: String): InputStream = fs.open(file(name))

  override def open(file: FileStatus): InputStream =
    FutureIO.awaitFuture(fs.openFile(file.getPath).withFileStatus(file).build())

  override def create(name: String): OutputStream = fs.create(file(name), false)

  override def delete(name: String): Unit = {
    val _ = fs.delete(file(name), false)
  }

  override def sync(): Unit = ()

  override def names(): Seq[String] = files().map(_.getPath.getName)

  override def files(): Seq[FileStatus] =
    try fs.listStatus(log.path).toVector
    catch { case _: FileNotFoundException => Seq.empty }

  private def file(name: String): Path = new Path(log.path, name)
}
