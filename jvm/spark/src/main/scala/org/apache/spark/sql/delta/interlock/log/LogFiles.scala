package org.apache.spark.sql.delta.interlock.log

import java.io.FileNotFoundException
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}
import java.util.Locale

import scala.annotation.nowarn
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, ExecutionContext, Future}

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.util.ThreadUtils

/** Looks at single files of a log, on a storage that shows at once what others have made. */
private[log] trait LogFiles {

  /** The status of each file; none for those that are not there.
    *
    * @param expected
    *   how many of them, from the first on, should be there
    */
  def look(files: Seq[Path], expected: Int): Seq[Option[FileStatus]]

  /** How many files are worth a look while it is not known whether they are there. */
  def ahead: Int
}

private[log] object LogFiles {

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

  private val OfServers = Set("s3a", "hdfs")
  private val requests =
    ExecutionContext.fromExecutorService(ThreadUtils.newDaemonCachedThreadPool(
      "interlock-look",
      16
    ))

  /** None if the storage may show a file later. */
  def of(log: DeltaLog): Option[LogFiles] = {
    val path = log.logPath
    if (QuickLocalFileSystem.isLocal(path)) Option.when(isOnOwnDisk(path))(OwnDisk)
    else Option.when(OfServers(path.toUri.getScheme))(
      new OnServer(path.getFileSystem(log.newDeltaHadoopConf()))
    )
  }

  private def isOnOwnDisk(log: Path): Boolean = onOwnDisk.get(
    log,
    () =>
      OwnDisks(Files.getFileStore(LocalPath.of(log.toUri.getPath)).`type`.toLowerCase(Locale.ROOT))
  )

  /** Whether a file has not been replaced. S3 tells its time in seconds or in milliseconds. */
  def isSame(before: FileStatus, now: FileStatus): Boolean = (before, now) match {
    case (before: EtagSource, now: EtagSource) => before.getEtag == now.getEtag
    case _ => before.getLen == now.getLen && before.getModificationTime == now.getModificationTime
  }

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

  final private class OnServer(fs: FileSystem) extends LogFiles {
    override def look(files: Seq[Path], expected: Int): Seq[Option[FileStatus]] = {
      val (known, others) = files.splitAt(expected)
      val looks = known.map(file => () => status(file)) ++ others.map(file => () => ifThere(file))
      val found = Future.traverse(looks)(look => Future(look())(requests))(implicitly, requests)
      Await.result(found, Duration.Inf)
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
