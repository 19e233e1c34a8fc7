package io.interlock.spark.audit

import java.io._
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Path => LocalPath}
import java.time.{Duration, Instant, LocalDate, ZoneOffset}
import java.util.{Collections, UUID}

import scala.util.matching.Regex
import scala.util.{Try, Using}

import com.google.common.cache.CacheBuilder
import io.interlock.coordinator.QuickLocalFileSystem
import io.interlock.spark.text.SmallFile
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.internal.Logging

/** The records of rejected commits beside a table's log: `_delta_log/_interlock`.
  *
  * On a local disk a process appends lines to a file of the day, and to another one when that is
  * full. Elsewhere, where appending may be unsafe or impossible, each record has its own file. Days
  * are in UTC. Lines and files that cannot be read are skipped, with one warning per file; writing
  * may throw IOException.
  *
  * @param log
  *   the table's `_delta_log`, which is never created, so that a dropped table does not reappear
  */
final class RecordFolder(log: Path, conf: Configuration) extends Logging {
  import RecordFolder._

  private val folder = new Path(log, Name)
  private lazy val fs: FileSystem = log.getFileSystem(conf)

  def append(record: ConflictRecord): Unit = {
    val line = (record.toJson + "\n").getBytes(UTF_8)
    val day = record.time.atOffset(ZoneOffset.UTC).toLocalDate
    if (QuickLocalFileSystem.isLocal(log)) appendLocally(day, line)
    else {
      if (!fs.exists(log)) throw new FileNotFoundException(log.toString)
      val file = new Path(folder, fileName(day, record.txnId))
      Using.resource(fs.create(file, true))(_.write(line))
    }
  }

  /** All records, newest first. Files are read when the iterator reaches them, those of a day that
    * were written last together, up to 16 MiB: the records of a day that has more are in order among
    * those.
    */
  def newestFirst(): Iterator[ConflictRecord] =
    readable(folder)(files()).groupBy { case (_, day) => day }.toSeq
      .sortBy(-_._1.toEpochDay).iterator
      .flatMap { case (_, ofDay) => readTogether(ofDay.map(_._1)) }
      .flatMap(_.flatMap(file => readable(file.getPath)(read(file)))
        .sortBy(-_.time.toEpochMilli))

  private def readTogether(files: Seq[FileStatus]): Iterator[Seq[FileStatus]] =
    Iterator.unfold(files.sortBy(-_.getModificationTime)) { left =>
      val sizes = left.iterator.scanLeft(0L)(_ + _.getLen).drop(1)
      Option.when(left.nonEmpty)(left.splitAt(sizes.takeWhile(_ <= MostBytes).size.max(1)))
    }

  /** Deletes the files of days that ended longer ago than `retention`. */
  def sweep(retention: Duration, now: Instant): Unit =
    readable(folder)(files()).foreach { case (file, day) =>
      val end = day.plusDays(1).atStartOfDay(ZoneOffset.UTC).toInstant
      if (end.plus(retention).isBefore(now)) fs.delete(file.getPath, false)
    }

  // By a plain stream, which an interrupt of the thread does not stop half-way.
  private def appendLocally(day: LocalDate, line: Array[Byte]): Unit = appending.synchronized {
    val local = LocalPath.of(folder.toUri.getPath)
    QuickLocalFileSystem.makeFolder(local, conf)
    val file = Iterator.from(0).map(n => local.resolve(fileName(day, s"$process-$n")).toFile)
      .find(one => one.length == 0 || one.length + line.length < MostBytes).get
    if (file.createNewFile()) QuickLocalFileSystem.permit(file.toPath, conf)
    val torn = if (isTorn(file)) "\n".getBytes(UTF_8) else Array.emptyByteArray
    Using.resource(new FileOutputStream(file, true))(_.write(torn ++ line))
  }

  private def files(): Seq[(FileStatus, LocalDate)] =
    fs.listStatus(folder).toSeq.flatMap(file => dayOf(file.getPath.getName).map(file -> _))

  private def read(file: FileStatus): Seq[ConflictRecord] = {
    val path = file.getPath
    val text = SmallFile.read(fs, file, MostBytes) {
      throw new IOException(s"$path has ${file.getLen} bytes")
    }
    text.fold(Vector.empty[ConflictRecord]) { found =>
      val lines = found.split('\n').toVector
      val records = lines.flatMap(ConflictRecord.ofJson)
      if (records.size < lines.size)
        skipped(path, s"${lines.size - records.size} of ${lines.size} lines are no records", None)
      records
    }
  }

  private def readable[T](path: Path)(read: => Seq[T]): Seq[T] =
    try read
    catch {
      case _: FileNotFoundException => Nil // none yet, or swept meanwhile
      case error: IOException =>
        skipped(path, "its records are not shown", Some(error))
        Nil
    }

  private def skipped(path: Path, what: String, error: Option[IOException]): Unit =
    if (warned.add(path)) logWarning(s"$path: $what.", error.orNull)
}

object RecordFolder {
  val Name = "_interlock"
  private val process = UUID.randomUUID.toString.take(8)
  private val appending = new Object

  /** How much a file has at most, and is read at a time, in bytes. */
  private val MostBytes = 16 << 20
  private val warned = Collections.newSetFromMap(
    CacheBuilder.newBuilder().maximumSize(10000).build[Path, java.lang.Boolean]().asMap
  )
  private val FileName: Regex = """conflicts-(\d{4}-\d\d-\d\d)-.*\.jsonl""".r

  private def fileName(day: LocalDate, writer: String): String = s"conflicts-$day-$writer.jsonl"

  private def dayOf(name: String): Option[LocalDate] = name match {
    case FileName(day) => Try(LocalDate.parse(day)).toOption
    case _ => None
  }

  /** Whether a crash has cut off the last line. */
  private def isTorn(file: File): Boolean = file.length > 0 &&
    Using.resource(new RandomAccessFile(file, "r")) { written =>
      written.seek(written.length - 1)
      written.read() != '\n'
    }
}
