package io.interlock.coordinator

import java.io.{ByteArrayInputStream, FileNotFoundException, IOException, InputStream}
import java.net.URI
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException => JFileAlreadyExistsException}
import java.util.concurrent.ConcurrentHashMap
import java.util.{EnumSet, UUID}

import scala.util.{Failure, Success, Try, Using}

import io.delta.storage.{AzureLogStore, GCSLogStore, HDFSLogStore, LogStore}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{CreateFlag, FileAlreadyExistsException, FileContext, FileSystem, Path}

/** How a file of a log is made that is not on a local disk. */
sealed private[coordinator] trait FileCreation {

  /** Makes `file` completely or not at all; it may already be there if this fails. */
  def create(file: Path, in: InputStream): Unit

  /** Why `create` may replace a file that is there; none if it never does. */
  def fault: Option[String]

  /** Whether a file that was forbidden cannot appear any more. If the client sends the content again
    * by itself, an earlier request may still be under way when a later one is refused.
    */
  def isRefusalFinal: Boolean
}

private[coordinator] object FileCreation {
  private val passed = ConcurrentHashMap.newKeySet[(String, String)]()

  /** Where a rename refuses a name that is taken, or Delta's LogStore sends a condition. Delta's
    * LogStore for HDFS is also that of all schemes that have none of their own.
    */
  private val Exclusive =
    Set("hdfs", "webhdfs", "swebhdfs", "ofs", "o3fs", "abfs", "abfss", "wasb", "wasbs", "gs")

  /** How the files of a log are made by its file system, or else by Delta's LogStore. */
  def of(log: TableLog, logStore: LogStore): FileCreation = logStore match {
    case _ if log.path.toUri.getScheme == "hdfs" => new SyncedCreation(log)
    case _: HDFSLogStore | _: AzureLogStore | _: GCSLogStore if !isOnS3(log) =>
      new LogStoreCreation(log, logStore, None)
    case _ => Try(log.path.getFileSystem(log.conf)) match {
        case Failure(e) => new LogStoreCreation(log, logStore, Some(s"Hadoop cannot open it ($e)"))
        case Success(fs)
            if !fs.hasPathCapability(log.path, ConditionalCreation.ConditionalOverwrite) =>
          val missing = s"${fs.getClass.getName} has no ${ConditionalCreation.ConditionalOverwrite}"
          new LogStoreCreation(log, logStore, Some(missing))
        case Success(fs) => new ConditionalCreation(log, fs)
      }
  }

  /** Why a bucket cannot order commits: what `test` finds, or else a [[StoreTrial]] of before, which
    * may have found what no test of one request after the other can. A bucket without a fault is not
    * asked again in this process.
    *
    * @param needsTrial
    *   whether a scheme of which nothing is known must have passed a trial
    * @throws java.io.IOException
    *   if the storage does not tell
    */
  private[coordinator] def faultOf(log: TableLog, needsTrial: Boolean)(
      test: => Option[String]
  ): Option[String] = {
    val home = homeOf(log)
    if (passed.contains(bucket(home))) None
    else {
      val isKnown = Exclusive(home.getScheme)
      lazy val kept = Try(StoreTrial.kept(log.conf, new Path(home)))
      val found = test.orElse(kept match {
        case Success(Some(trial)) if !trial.passed =>
          Some(s"interlock doctor found at ${trial.at} that ${trial.found}")
        case Success(None) if needsTrial && !isKnown =>
          Some(s"`interlock doctor ${log.path.getParent}` has not shown that no file is made twice")
        case Failure(untold) if !isKnown => throw untold
        case _ => None
      })
      if (found.isEmpty && kept.isSuccess) passed.add(bucket(home))
      found
    }
  }

  /** Trusts a bucket in which the writers of a trial have raced. */
  private[coordinator] def hasPassed(log: TableLog): Unit = passed.add(bucket(homeOf(log))): Unit

  private def bucket(home: URI) = (home.getScheme, home.getAuthority)

  /** A rename on S3 is a copy and replaces an existing file, whichever class makes it. */
  private def isOnS3(log: TableLog): Boolean = homeOf(log).getScheme.startsWith("s3")

  private def homeOf(log: TableLog): URI = homeOf(log.conf, log.path)

  /** A place in the file system that has a folder; one of `viewfs` only mounts others. */
  private[coordinator] def homeOf(conf: Configuration, path: Path): URI = path.toUri match {
    case uri if uri.getScheme == "viewfs" =>
      val fs = path.getFileSystem(conf)
      def resolved(folder: Path) =
        try Some(fs.resolvePath(folder).toUri)
        catch { case _: FileNotFoundException => None }
      Iterator.iterate(path)(_.getParent).takeWhile(_ != null)
        .flatMap(resolved).nextOption().getOrElse(uri)
    case uri => uri
  }
}

/** Raised where a file was certainly not made, and cannot be made by this try any more. */
final private[coordinator] class NotCreated(file: Path, cause: IOException)
    extends IOException(s"$file cannot be made", cause)

/** By a rename, as Delta's LogStore for HDFS does it, of a file that DataNodes have synced to their
  * disks. HDFS refuses a name that is taken.
  */
final private class SyncedCreation(log: TableLog) extends FileCreation {
  override def fault: Option[String] = None
  override def isRefusalFinal: Boolean = true

  override def create(file: Path, in: InputStream): Unit = Using.resource(in) { in =>
    val files = FileContext.getFileContext(file.toUri, log.conf)
    val draft = new Path(file.getParent, s".${file.getName}.${UUID.randomUUID()}.tmp")
    try {
      val synced = EnumSet.of(CreateFlag.CREATE, CreateFlag.SYNC_BLOCK)
      try Using.resource(files.create(draft, synced))(in.transferTo(_))
      catch { case failed: IOException => throw new NotCreated(file, failed) }
      files.rename(draft, file)
    } catch {
      case failed: Throwable =>
        Try(files.delete(draft, false))
        throw failed
    }
  }
}

/** By Delta's LogStore.
  *
  * @param missing
  *   why it may replace a file, whatever the server does; none if it never does
  */
final private class LogStoreCreation(
    log: TableLog,
    logStore: LogStore,
    val missing: Option[String]
) extends FileCreation {
  override def fault: Option[String] =
    missing.orElse(FileCreation.faultOf(log, needsTrial = true)(None))

  /** A rename has no content that could still be under way. */
  override def isRefusalFinal: Boolean = logStore match {
    case _: HDFSLogStore | _: AzureLogStore => true
    case _ => false
  }

  override def create(file: Path, in: InputStream): Unit = LogFolder.reading(in) { lines =>
    logStore.write(file, lines.lines().iterator, false, log.conf)
  }
}

/** By Hadoop's conditional create. For S3A, that is a request with `If-None-Match: *`, which the
  * server refuses if the object is there.
  */
final private class ConditionalCreation(log: TableLog, fs: FileSystem) extends FileCreation {
  import ConditionalCreation._

  override def create(file: Path, in: InputStream): Unit = Using.resource(in) { in =>
    val out = fs.createFile(file).create().overwrite(true)
      .must(ConditionalOverwrite, true)
      .build()
    try in.transferTo(out)
    catch {
      case failed: Throwable =>
        out.abort() // close() would make the file of what was written so far
        throw failed
    }
    out.close()
  }

  override def isRefusalFinal: Boolean = false

  /** A server that does not know the condition may ignore it, so each bucket is tested. */
  override def fault: Option[String] = FileCreation.faultOf(log, needsTrial = false) {
    if (replaces()) Some("its server ignores If-None-Match") else None
  }

  private def replaces(): Boolean = {
    val probe = new Path(log.path, s".probe.${UUID.randomUUID()}.tmp")
    def put(text: String): Unit = create(probe, new ByteArrayInputStream(text.getBytes(UTF_8)))
    try {
      put("first")
      Try(put("second")) match {
        case Success(()) => true
        case Failure(refused) if isTaken(refused) => false
        case Failure(other) => throw other // a server that is busy has not shown anything
      }
    } finally Try(fs.delete(probe, false)): Unit
  }
}

private object ConditionalCreation {

  /** Hadoop's name for it since 3.4.2; Spark 4.0 carries 3.4.1. */
  val ConditionalOverwrite = "fs.option.create.conditional.overwrite"

  /** S3A's exception for a condition that does not hold; its jar need not be there. */
  private val ChangedFile = "org.apache.hadoop.fs.s3a.RemoteFileChangedException"

  private def isTaken(refused: Throwable): Boolean = Causes.of(refused).exists {
    case _: FileAlreadyExistsException | _: JFileAlreadyExistsException => true
    case other => other.getClass.getName == ChangedFile
  }
}
