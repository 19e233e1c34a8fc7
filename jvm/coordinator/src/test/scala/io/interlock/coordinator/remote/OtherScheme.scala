package io.interlock.coordinator

import java.io.OutputStream
import java.net.URI
import java.util.concurrent.CountDownLatch

import scala.collection.concurrent.TrieMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{
  DelegateToFileSystem,
  EtagSource,
  FileStatus,
  FileSystem,
  Path,
  RawLocalFileSystem
}

/** A local disk that Hadoop and Delta take for Ozone, whose renames replace no file. */
object OtherScheme {
  val Scheme = "ofs"
  private[coordinator] val renames = TrieMap.empty[Path, (() => Boolean) => Boolean]
  private[coordinator] val silences = TrieMap.empty[Path, Silence]
  private[coordinator] val looks = TrieMap.empty[Path, String => Unit]

  def log(log: TableLog): TableLog = {
    val conf = new Configuration(false)
    conf.set(s"fs.$Scheme.impl", classOf[OtherFileSystem].getName)
    conf.setBoolean(s"fs.$Scheme.impl.disable.cache", true)
    conf.set(s"fs.AbstractFileSystem.$Scheme.impl", classOf[OtherFs].getName)
    TableLog(new Path(Scheme, "", log.path.toUri.getPath), conf)
  }

  /** Has `rename` done, or not done, by `fault` while `body` runs, where a file of the log is made.
    */
  def renaming[A](log: TableLog)(fault: (() => Boolean) => Boolean)(body: => A): A = {
    renames += log.path -> fault
    try body
    finally renames -= log.path
  }

  /** The names of the log's files whose status is asked for by `body`. */
  def looksAt(log: TableLog)(body: => Unit): Seq[String] = {
    var names = Vector.empty[String]
    lookingAt(log)(name => names :+= name)(body)
    names
  }

  /** Calls `job` before each look at a file of the log by `body`. */
  def lookingAt(log: TableLog)(job: String => Unit)(body: => Unit): Unit = {
    looks += log.path -> job
    try body
    finally looks -= log.path: Unit
  }

  /** Has no file below the log created or deleted until `body` has ended. */
  def unanswering[A](log: TableLog)(body: Silence => A): A = {
    val silence = new Silence
    silences += log.path -> silence
    try body(silence)
    finally {
      silences -= log.path
      silence.ended.countDown()
    }
  }

  /** While a storage does not answer. */
  final class Silence {
    private val met = new CountDownLatch(1)
    private[OtherScheme] val ended = new CountDownLatch(1)

    /** Waits until somebody waits for the storage. */
    def awaitMet(): Unit = met.await()

    private[coordinator] def meet(): Unit = {
      met.countDown()
      ended.await()
    }
  }

  private[coordinator] def meet(file: Path): Unit =
    Iterator.iterate(file)(_.getParent).takeWhile(_ != null).flatMap(silences.get).foreach(_.meet())
}

class OtherFileSystem extends RawLocalFileSystem {
  override def getUri: URI = URI.create(s"${OtherScheme.Scheme}:///")
  override def getScheme: String = OtherScheme.Scheme
  override def getFileStatus(file: Path): FileStatus = {
    OtherScheme.looks.get(file.getParent).foreach(_(file.getName))
    new TaggedStatus(super.getFileStatus(file))
  }
  override protected def createOutputStreamWithMode(
      file: Path,
      append: Boolean,
      permission: FsPermission
  ): OutputStream = {
    OtherScheme.meet(file)
    super.createOutputStreamWithMode(file, append, permission)
  }
  override def delete(file: Path, recursive: Boolean): Boolean = {
    OtherScheme.meet(file)
    super.delete(file, recursive)
  }
  override def rename(source: Path, target: Path): Boolean = {
    def done = super.rename(source, target)
    OtherScheme.renames.get(target.getParent).fold(done)(fault => fault(() => done))
  }
}

/** As object stores have it. */
final class TaggedStatus(of: FileStatus)
    extends FileStatus(of.getLen, of.isDirectory, 1, 0, of.getModificationTime, of.getPath)
    with EtagSource {
  override def getEtag: String = s"$getModificationTime $getLen"
}

class OtherFs(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, OtherFs.fileSystem(conf), conf, OtherScheme.Scheme, false) {
  override def getUriDefaultPort: Int = -1
}

object OtherFs {
  private def fileSystem(conf: Configuration): FileSystem = {
    val fs = new OtherFileSystem
    fs.initialize(fs.getUri, conf)
    fs
  }
}
