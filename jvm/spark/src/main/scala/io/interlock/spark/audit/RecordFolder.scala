package io.interlock.spark.audit

import java.io.{FileNotFoundException, FileOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Path => LocalPath}
import java.time.{Duration, Instant, LocalDate, ZoneOffset}
import java.util.UUID

import scala.io.Source
import scala.util.Using
import scala.util.matching.Regex

import io.interlock.spark.audit.ConflictRecord.Fact
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

/** The records of rejected commits beside a table's log: `_delta_log/_interlock`.
  *
  * On a local disk a process has a file for each day, to which it appends lines; elsewhere, where
  * appending is not safe or not there, a file for each record. Days are in UTC. Every method may
  * throw IOException.
  *
  * @param log
  *   the table's `_delta_log`, which is never made: a table that was dropped stays so
  */
final class RecordFolder(log: Path, conf: Configuration) {
  import RecordFolder._

  private val folder = new Path(log, Name)
  private lazy val fs: FileSystem = log.getFileSystem(conf)

  def append(record: ConflictRecord): Unit = {
    val line = (record.toJson + "\n").getBytes(UTF_8)
    val day = Instant.ofEpochMilli(record.millis).atOffset(ZoneOffset.UTC).toLocalDate
    if (isLocal) appendLocally(fileName(day, process), line)
    else {
      if (!fs.exists(log)) throw new FileNotFoundException(log.toString)
      val name = fileName(day, record.text(Fact.Attempt).getOrElse(UUID.randomUUID.toString))
      Using.resource(fs.create(new Path(folder, name), true))(_.write(line))
    }
  }

  /** All records, newest first; the files of a day are read when the iterator gets there. */
  def newestFirst(): Iterator[ConflictRecord] =
    files().groupBy { case (_, day) => day }.toSeq.sortBy(-_._1.toEpochDay).iterator
      .flatMap { case (_, ofDay) =>
        ofDay.flatMap { case (path, _) => read(path) }.sortBy(-_.millis)
      }

  /** Deletes the files of days that ended longer ago than `retention`. */
  def sweep(retention: Duration, now: Instant): Unit =
    files().foreach { case (path, day) =>
      val end = day.plusDays(1).atStartOfDay(ZoneOffset.UTC).toInstant
      if (end.plus(retention).isBefore(now)) fs.delete(path, false)
    }

  private def isLocal: Boolean = Option(log.toUri.getScheme).forall(_ == "file")

  // By a plain stream: an interrupt of the thread stops nothing half-way.
  private def appendLocally(name: String, line: Array[Byte]): Unit = appending.synchronized {
    val local = LocalPath.of(folder.toUri.getPath)
    try Files.createDirectory(local)
    catch { case _: FileAlreadyExistsException => () }
    Using.resource(new FileOutputStream(local.resolve(name).toFile, true))(_.write(line))
  }

  private def files(): Seq[(Path, LocalDate)] = {
    val found =
      try fs.listStatus(folder).toSeq
      catch { case _: FileNotFoundException => Nil }
    found.map(_.getPath).flatMap(path => dayOf(path.getName).map(path -> _))
  }

  private def read(path: Path): Seq[ConflictRecord] =
    try
      Using.resource(fs.open(path)) { in =>
        Source.fromInputStream(in, "UTF-8").getLines().flatMap(ConflictRecord.ofJson).toVector
      }
    catch { case _: FileNotFoundException => Nil } // swept meanwhile
}

object RecordFolder {
  val Name = "_interlock"
  private val process = UUID.randomUUID.toString.take(8)
  private val appending = new Object
  private val FileName: Regex = """conflicts-(\d{4}-\d\d-\d\d)-.*\.jsonl""".r

  private def fileName(day: LocalDate, writer: String): String = s"conflicts-$day-$writer.jsonl"

  private def dayOf(name: String): Option[LocalDate] = name match {
    case FileName(day) => Some(LocalDate.parse(day))
    case _ => None
  }
}
