package io.interlock.coordinator

import java.io._
import java.nio.channels.{ClosedByInterruptException, FileChannel}
import java.nio.file.StandardOpenOption.READ
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path

/** A `_delta_log` on a local disk. It does not use Hadoop's local file system, which starts a
  * process for each file that it creates. An interrupt of the thread does not stop an operation
  * half-way.
  */
final private[coordinator] class LocalFolder(log: TableLog) extends LogFolder {
  val path: LocalPath = LocalPath.of(log.path.toUri.getPath)

  override def status(name: String): Option[LocalStatus] =
    try {
      val found = Files.readAttributes(file(name), classOf[BasicFileAttributes])
      Some(new LocalStatus(new Path(log.path, name), found))
    } catch { case _: NoSuchFileException => None }

  override def open(name: String): InputStream = Files.newInputStream(file(name))

  override def create(name: String): OutputStream = {
    val target = file(name).toFile
    if (!target.createNewFile()) throw new FileAlreadyExistsException(target.toString)
    QuickLocalFileSystem.permit(target.toPath, log.conf)
    val stream = new FileOutputStream(target)
    new BufferedOutputStream(stream, 1 << 16) {
      override def close(): Unit =
        try {
          flush()
          stream.getFD.sync()
        } finally stream.close()
    }
  }

  override def delete(name: String): Unit = {
    val _ = Files.deleteIfExists(file(name))
  }

  override def names(): Seq[String] =
    if (!Files.isDirectory(path)) Seq.empty
    else
      Using.resource(Files.newDirectoryStream(path)) { files =>
        files.iterator.asScala.map(_.getFileName.toString).toVector
      }

  /** Makes `target` a second name of the file `source`; never replaces another file.
    *
    * @throws FileAlreadyExistsException
    *   if `target` exists
    */
  def link(source: String, target: String): Unit = {
    val _ = Files.createLink(file(target), file(source))
  }

  override def sync(): Unit =
    try Using.resource(FileChannel.open(path, READ))(_.force(true))
    catch {
      case _: ClosedByInterruptException =>
        Interrupt.setAside(sync())
    }

  private def file(name: String): LocalPath = path.resolve(name)
}
