package io.interlock.coordinator

import java.io.{BufferedReader, InputStream, InputStreamReader, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.{DigestInputStream, MessageDigest}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.hadoop.fs.FileStatus

/** The files of one `_delta_log`, by their names in it. Every method may throw IOException. */
private[coordinator] trait LogFolder {

  /** The status of a file; none if there is no such file. */
  def status(name: String): Option[FileStatus]

  def open(name: String): InputStream

  /** Opens a file whose status is known, for which an object store need not be asked again. */
  def open(file: FileStatus): InputStream = open(file.getPath.getName)

  /** Creates a new file and never replaces another. It is complete and durable once `close`
    * returns.
    */
  def create(name: String): OutputStream

  /** Deletes a file, if there is one. */
  def delete(name: String): Unit

  /** The names of all files in the folder, in no order; none if it does not exist. The status of
    * the files is not read, since a log may have 100,000 files and more.
    */
  def names(): Seq[String]

  /** The status of all files in a small folder, in no order; none if it does not exist. */
  def files(): Seq[FileStatus] = names().flatMap(status)

  /** Makes the folder's entries durable. */
  def sync(): Unit

  /** The first line of version `version`; none if the log has no such version. */
  final def firstLine(version: Long): Option[String] =
    status(LogFolder.commitName(version)).flatMap(firstLine)

  final def firstLine(file: FileStatus): Option[String] =
    LogFolder.reading(open(file))(in => Option(in.readLine()))

  /** The whole of version `version`, if the log has it and it is small. */
  final def body(version: Long): Option[CommitBody] =
    status(LogFolder.commitName(version)).flatMap(body(version, _))

  /** The whole of version `version`, if its file is small. */
  final def body(version: Long, file: FileStatus): Option[CommitBody] =
    Option.when(file.getLen < LogFolder.Small) {
      CommitBody(
        version,
        file,
        LogFolder.reading(open(file))(_.lines().iterator.asScala.toVector)
      )
    }

  /** Creates a new file with the given bytes; if that fails, no file is left behind.
    *
    * @return
    *   its size
    */
  final def write(name: String, parts: Iterator[Array[Byte]]): Long =
    try
      Using.resource(create(name)) { out =>
        parts.foldLeft(0L) { (size, part) =>
          out.write(part)
          size + part.length
        }
      }
    catch {
      case e: Throwable =>
        Try(delete(name))
        throw e
    }

  final def sha256(file: FileStatus): Array[Byte] = {
    val digest = LogFolder.newDigest()
    Using.resource(new DigestInputStream(open(file), digest))(
      _.transferTo(OutputStream.nullOutputStream())
    )
    digest.digest()
  }
}

private[coordinator] object LogFolder {

  /** Commits below this size, in bytes, are held in memory. */
  val Small: Long = 1L << 20

  def of(log: TableLog): LogFolder =
    if (isLocal(log)) new LocalFolder(log) else new HadoopFolder(log)

  /** Whether the log is on a local disk or a mounted network disk. */
  def isLocal(log: TableLog): Boolean = QuickLocalFileSystem.isLocal(log.path)

  def commitName(version: Long): String = f"$version%020d.json"
  def checksumName(version: Long): String = f"$version%020d.crc"

  /** Checks the log before a version is made: since a transaction read the table, the folder may
    * have been emptied and filled again.
    *
    * @throws CoordinatorException
    *   if the version before `version` is not there
    */
  def requireNoGap(log: TableLog, version: Long): Unit = {
    val folder = of(log)
    val before = version - 1
    def checkpointed = folder.names().exists(_.startsWith(f"$before%020d.checkpoint"))
    if (version > 0 && folder.status(commitName(before)).isEmpty && !checkpointed)
      throw new CoordinatorException(
        "INTERLOCK_LOG_GAP",
        Map("path" -> log.path.toString, "version" -> version.toString, "before" -> before.toString)
      )
  }

  def newDigest(): MessageDigest = MessageDigest.getInstance("SHA-256")

  /** Reads `in`, and closes it. */
  def reading[A](in: InputStream)(read: BufferedReader => A): A =
    Using.resource(new BufferedReader(new InputStreamReader(in, UTF_8)))(read)
}
