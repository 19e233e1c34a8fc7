package io.interlock.coordinator

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.{Files, Path => LocalPath}
import java.security.PrivilegedExceptionAction
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{ConcurrentHashMap, Future}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Try, Using}

import org.apache.hadoop.fs.Options.Rename.OVERWRITE
import org.apache.hadoop.fs.{FileContext, FileSystem, Path}
import org.apache.hadoop.security.UserGroupInformation
import org.slf4j.LoggerFactory

/** Notes of processes beside the log of a table, in `_delta_log/_interlock/<kind>`. A note is alive as
  * long as its process renews it. No two clocks are compared: a note is dead once this process has
  * seen it unchanged for 10 s, and the process that finds it dead deletes it.
  *
  * All methods are thread-safe. Those that read or write files may throw IOException.
  *
  * @param deadAfter
  *   how long a note of another process may stay unchanged
  */
final class Leases private[coordinator] (log: TableLog, kind: String, deadAfter: FiniteDuration) {
  import Leases._

  def this(log: TableLog, kind: String) = this(log, kind, Leases.DeadAfter)

  private val path = new Path(new Path(log.path, Folder), kind)

  /** Opened anew for each use, as others may close the file system. */
  private def folder = LogFolder.of(log.copy(path = path))

  /** Writes a note, or replaces it, and keeps it alive until it is removed or this process ends. If
    * that fails, the process has no such note any more; what is in the folder may be alive for others
    * for a while.
    *
    * @param id
    *   a file name
    * @param most
    *   after this time it is removed
    */
  def put(id: String, text: String, most: FiniteDuration): Unit = {
    val note = new Note(this, id, text)
    Option(held.put(file(id), note)).foreach(_.end(): Unit)
    try note.write()
    catch {
      case failed: Throwable =>
        note.end(): Unit
        forgetLater(note)
        throw failed
    }
    note.endsBy(renewals.after(most)(note.remove(): Unit))
  }

  /** When all processes find a file dead that could not be replaced or deleted, it is nobody's. */
  private def forgetLater(note: Note): Unit =
    renewals.after(deadAfter * 2)(note.forget()): Unit

  /** Removes a note of this process.
    *
    * @return
    *   whether there was one
    */
  def remove(id: String): Boolean = Option(held.get(file(id))).exists(_.remove())

  /** The notes of this process: id and text. */
  def own: Seq[(String, String)] = held.asScala.iterator.collect {
    case (file, note) if file.getParent == path && note.isAlive => file.getName -> note.text
  }.toSeq

  /** The notes of all processes that are alive, those of this one first. */
  def all(): Seq[(String, String)] = own ++ others()

  /** The notes of other processes that are alive. */
  def others(): Seq[(String, String)] = {
    val asked = System.nanoTime
    val found = folder.files().filterNot { status =>
      val id = status.getPath.getName
      id.startsWith(".") || held.containsKey(file(id))
    }
    val listed = System.nanoTime
    val (alive, dead) = found.partition { status =>
      val now = Seen(status.getModificationTime, status.getLen, listed)
      val before = Option(seen.get(status.getPath)).filter(_.isOf(now)).getOrElse(now)
      seen.put(status.getPath, before)
      asked - before.since < deadAfter.toNanos
    }
    // Which the owner of the folder may not allow.
    dead.foreach(status => Try(folder.delete(status.getPath.getName)))
    alive.map(_.getPath.getName).flatMap(id => read(id).map(id -> _))
  }

  /** None if it is gone, or belongs to a user who does not let others read it. A note that is being
    * written may be empty for a moment.
    */
  private def read(id: String): Option[String] = {
    def text = Using.resource(folder.open(id))(in => new String(in.readAllBytes(), UTF_8))
    try
      Iterator.continually(text).take(MostReads).find { found =>
        if (found.isEmpty) Thread.sleep(BetweenReads.toMillis)
        found.nonEmpty
      }
    catch { case _: IOException => None }
  }

  private def file(id: String) = new Path(path, id)

  /** Never creates the log's folder, so that a table that was dropped does not reappear. */
  private def write(id: String, text: String): Unit =
    if (LogFolder.isLocal(log)) {
      val target = LocalPath.of(path.toUri.getPath)
      Seq(target.getParent, target).foreach(QuickLocalFileSystem.makeFolder(_, log.conf))
      val draft = target.resolve(s".$id.tmp")
      try {
        Files.write(draft, text.getBytes(UTF_8))
        QuickLocalFileSystem.permit(draft, log.conf)
        Files.move(draft, target.resolve(id), ATOMIC_MOVE): Unit
      } finally Files.deleteIfExists(draft): Unit
    } else {
      val fs = fileSystem
      if (!fs.exists(log.path)) throw new FileNotFoundException(log.path.toString)
      if (isOnHdfs) {
        val draft = file(s".$id.tmp")
        try {
          create(fs, draft, text)
          FileContext.getFileContext(path.toUri, log.conf).rename(draft, file(id), OVERWRITE)
        } finally fs.delete(draft, false): Unit
      } else create(fs, file(id), text)
    }

  private def fileSystem = path.getFileSystem(log.conf)

  private def create(fs: FileSystem, file: Path, text: String): Unit = {
    val out = fs.createFile(file).overwrite(true).recursive()
      .opt("fs.s3a.create.performance", true) // does not look for a folder in its place
      .build()
    Using.resource(out)(_.write(text.getBytes(UTF_8)))
  }

  /** Whether a file that is replaced is empty until its DataNodes have the new content. */
  private def isOnHdfs = path.toUri.getScheme == "hdfs"

  /** Shows that a note is alive. On HDFS its file is touched, for which no DataNode is needed. An
    * object store is asked for the note, since it would list the log to find the folder.
    */
  private def renew(id: String, text: String): Unit =
    if (LogFolder.isLocal(log)) write(id, text)
    else {
      val fs = fileSystem
      if (isOnHdfs)
        try fs.setTimes(file(id), System.currentTimeMillis, -1)
        catch { case _: FileNotFoundException => write(id, text) }
      else if (fs.exists(file(id))) create(fs, file(id), text)
      else write(id, text)
    }
}

object Leases {

  /** The folder in `_delta_log`. */
  private val Folder = "_interlock"

  /** How long the note of another process may stay unchanged until it is dead. */
  val DeadAfter: FiniteDuration = 10.seconds
  private val BetweenRenewals = 2.seconds
  private val BetweenReads = 20.millis
  private val MostReads = 10
  private val logger = LoggerFactory.getLogger(getClass)

  /** The notes of this process whose files may be there, even if they have ended. */
  private val held = new ConcurrentHashMap[Path, Note]
  private val seen = RecentlyUsed.map[Path, Seen]()

  /** Renews all notes of this process, once one was written. */
  private lazy val renewals: BackgroundWork = {
    val work = new BackgroundWork("interlock-leases")
    work.every(BetweenRenewals)(held.values.forEach(note => work.start(note)(note.renew())))
    work
  }

  /** The notes of this process for any table: log, id and text. */
  def held(kind: String): Seq[(Path, String, String)] = held.asScala.iterator.collect {
    case (file, note) if file.getParent.getName == kind && note.isAlive =>
      (file.getParent.getParent.getParent, note.id, note.text)
  }.toSeq

  /** Removes a note of this process, whatever its table.
    *
    * @return
    *   whether there was one
    */
  def remove(kind: String, id: String): Boolean = held.asScala.exists { case (file, note) =>
    file.getParent.getName == kind && note.id == id && note.leases.remove(id)
  }

  /** Deletes all notes of this process; those whose storage does not answer in time are left to
    * other processes.
    */
  def close(most: FiniteDuration): Unit = {
    val notes = held.values.asScala.toSeq
    if (notes.nonEmpty)
      renewals.runAll(most)(notes.map(note => () => note.leases.remove(note.id): Unit))
  }

  /** A note of this process. */
  final private class Note(val leases: Leases, val id: String, val text: String) {
    private val user = UserGroupInformation.getCurrentUser
    private val alive = new AtomicBoolean(true)
    private var isWarned = false
    private var ending: Option[Future[_]] = None

    def isAlive: Boolean = alive.get

    /** Sets the task that ends it by itself. */
    def endsBy(task: Future[_]): Unit = synchronized {
      ending = Some(task)
      if (!isAlive) task.cancel(false): Unit
    }

    def write(): Unit = unlessOver(leases.write(id, text))

    private def unlessOver(work: => Unit): Unit = synchronized(if (isAlive) asUser(work))

    private def asUser(work: => Unit): Unit =
      user.doAs((() => work): PrivilegedExceptionAction[Unit])

    private def delete(): Unit = asUser(leases.folder.delete(id))

    private def isHeld: Boolean = held.get(leases.file(id)) eq this

    /** Ends its renewal; a note that is being written is finished first.
      *
      * @return
      *   whether it was alive
      */
    def end(): Boolean = {
      val wasAlive = alive.getAndSet(false)
      synchronized(ending.foreach(_.cancel(false)))
      wasAlive
    }

    /** Ends it and deletes its file, unless another note has replaced it.
      *
      * @return
      *   whether it was alive, and not replaced
      */
    def remove(): Boolean = {
      val wasAlive = end()
      synchronized {
        val wasHeld = isHeld
        if (wasHeld) {
          try delete()
          catch {
            case failed: Throwable =>
              leases.forgetLater(this)
              throw failed
          }
          held.remove(leases.file(id), this): Unit
        }
        wasAlive && wasHeld
      }
    }

    /** Leaves its file to others, if it still cannot be deleted. */
    def forget(): Unit = synchronized(if (isHeld) {
      Try(delete()): Unit
      held.remove(leases.file(id), this): Unit
    })

    def renew(): Unit =
      try unlessOver(leases.renew(id, text))
      catch {
        case NonFatal(failed) =>
          if (!isWarned) logger.warn(s"${leases.file(id)} is not renewed", failed)
          isWarned = true
      }
  }

  /** How a note looked, and since when. */
  final private case class Seen(modified: Long, length: Long, since: Long) {
    def isOf(other: Seen): Boolean = modified == other.modified && length == other.length
  }
}
