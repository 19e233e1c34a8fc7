package org.apache.spark.sql.delta.interlock.log

import java.io.FileNotFoundException
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}
import java.util.Locale
import java.util.concurrent.ExecutionException

import scala.annotation.nowarn

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.util.ThreadUtils

/** Looks at single files of a log, on a storage that shows at once what others have made. */
private[interlock] trait LogFiles {

  /** The status of each file; none for those that are not there.
    *
    * @param expected
    *   how many of them, from the first on, should be there
    */
  def look(files: Seq[Path], expected: Int): Seq[Option[FileStatus]]

  /** How many files are worth a look while it is not known whether they are there. */
  def ahead: Int
}

private[interlock] object LogFiles {

  /** Types of disks that only one machine has. A network disk may say for some seconds that a file
    * of another machine is not there, and lists it.
    */
  private val OwnDisks = Set(
    "apfs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hfs",
    "ntfs",
    "overlay",
    "tmpfs",
    "xfs",
    "zfs"
  )
  private val onOwnDisk =
    CacheBuilder.newBuilder().maximumSize(10000).build[Path, java.lang.Boolean]()

  /** Clients of servers that show a file at once. */
  private val OfServers = Map(
    "hdfs" -> "org.apache.hadoop.hdfs.DistributedFileSystem",
    "s3a" -> "org.apache.hadoop.fs.s3a.S3AFileSystem"
  )

  /** As many as there are looks, so that none waits for a server that another one does not reach. */
  private val requests = ThreadUtils.newDaemonCachedThreadPool("interlock-look")

  /** None if the storage may show a file later. */
  def of(log: DeltaLog): Option[LogFiles] = {
    val path = log.logPath
    if (QuickLocalFileSystem.isLocal(path)) Option.when(isOnOwnDisk(path))(OwnDisk)
    else for {
      client <- OfServers.get(path.toUri.getScheme)
      fs = path.getFileSystem(log.newDeltaHadoopConf()) if fs.getClass.getName == client
    } yield new OnServer(fs)
  }

  private def isOnOwnDisk(log: Path): Boolean = onOwnDisk.get(
    log,
    () =>
      OwnDisks(Files.getFileStore(LocalPath.of(log.toUri.getPath)).`type`.toLowerCase(Locale.ROOT))
  )

  private object OwnDisk extends LogFiles {
    override def look(files: Seq[Path], expected: Int): Seq[Option[FileStatus]] =
      files.map(status)

    override val ahead: Int = 1

    private def status(file: Path): Option[FileStatus] =
      try {
        val found =
          Files.readAttributes(LocalPath.of(file.toUri.getPath), classOf[BasicFileAttributes])
        val modified = found.lastModifiedTime.toMillis
        Some(new FileStatus(found.size, found.isDirectory, 1, HadoopBlock, modified, file))
      } catch { case _: NoSuchFileException => None }

    private val HadoopBlock = 32L << 20
  }

  final private[log] class OnServer(fs: FileSystem) extends LogFiles {
    override def look(files: Seq[Path], expected: Int): Seq[Option[FileStatus]] = {
      val (known, others) = files.splitAt(expected)
      val looks = known.map(file => () => status(file)) ++ others.map(file => () => ifThere(file))
      val begun = looks.map(look => requests.submit(() => look()))
      try begun.map(_.get())
      catch { case failed: ExecutionException => throw failed.getCause }
      finally begun.foreach(_.cancel(true))
    }

    override val ahead: Int = 4

    private def status(file: Path): Option[FileStatus] =
      try Some(fs.getFileStatus(file))
      catch { case _: FileNotFoundException => None }

    /** For `getFileStatus` of a file that is not there S3A also looks for a folder of its name. */
    @nowarn("cat=deprecation")
    private def ifThere(file: Path): Option[FileStatus] =
      if (fs.isFile(file)) status(file) else None
  }
}
