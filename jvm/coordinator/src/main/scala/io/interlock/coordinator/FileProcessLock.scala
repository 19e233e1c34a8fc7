package io.interlock.coordinator

import java.nio.channels.{FileChannel, FileLock, OverlappingFileLockException}
import java.nio.file.StandardOpenOption.{CREATE, READ, WRITE}
import java.nio.file.attribute.{BasicFileAttributes, PosixFilePermission}
import java.nio.file.{Files, LinkOption, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Try

/** A lock on a file in the log, made when two processes first meet, and left there. The operating
  * system releases it when its process ends.
  *
  * Who is about to hold it stands at a second lock meanwhile, so that the one who gives the first up
  * cannot have it again at once.
  */
final private[coordinator] class FileProcessLock(folder: LocalPath) extends ProcessLock {
  import FileProcessLock._

  private val file = folder.resolve(Name)
  private var opened: Option[Opened] = None
  private var turn: Option[FileLock] = None
  private var place: Option[FileLock] = None

  override def isWanted: Boolean = Files.exists(file) && {
    val isFree = tryTake()
    release()
    !isFree
  }

  /** True where the file cannot be used. */
  override def tryTake(): Boolean = turn.nonEmpty || channel().forall { lock =>
    if (place.isEmpty) place = locked(lock, Place)
    if (place.nonEmpty) turn = locked(lock, Turn)
    if (turn.nonEmpty) place = released(place)
    turn.nonEmpty
  }

  override def release(): Unit = {
    place = released(place)
    turn = released(turn)
  }

  private def released(lock: Option[FileLock]): Option[FileLock] = {
    lock.foreach(held => Try(held.release()))
    None
  }

  /** Also None where another queue of this JVM has it. */
  private def locked(channel: FileChannel, at: Long): Option[FileLock] =
    try Option(channel.tryLock(at, 1, false))
    catch {
      case _: OverlappingFileLockException => None
      case _: java.io.IOException => None
    }

  /** The file that is there now: a lock on one that was deleted keeps nobody out. */
  private def channel(): Option[FileChannel] = {
    if (opened.exists(was => !was.channel.isOpen || !key().contains(was.key))) {
      release()
      opened.foreach(was => Try(was.channel.close()))
      opened = None
    }
    if (opened.isEmpty) opened = open()
    opened.map(_.channel)
  }

  private def open(): Option[Opened] = Try {
    val isNew = !Files.exists(file)
    val channel = FileChannel.open(file, CREATE, READ, WRITE)
    if (isNew) Try(Files.setPosixFilePermissions(file, permissions()))
    key().map(Opened(channel, _))
  }.toOption.flatten

  /** Who may write to the folder may lock it. */
  private def permissions() =
    Files.getPosixFilePermissions(folder).asScala.filterNot(Executing).asJava

  private def key(): Option[AnyRef] = Try(
    Files.readAttributes(file, classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS).fileKey
  ).toOption
}

private[coordinator] object FileProcessLock {
  val Name = "_interlock.turn"

  private val Turn = 0L
  private val Place = 1L

  final private case class Opened(channel: FileChannel, key: AnyRef)

  private val Executing = Set(
    PosixFilePermission.OWNER_EXECUTE,
    PosixFilePermission.GROUP_EXECUTE,
    PosixFilePermission.OTHERS_EXECUTE
  )
}
