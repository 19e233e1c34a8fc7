package io.interlock.coordinator

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.{
  ClosedByInterruptException,
  FileChannel,
  FileLock,
  OverlappingFileLockException
}
import java.nio.file.StandardOpenOption.{CREATE, READ, WRITE}
import java.nio.file.{Files, LinkOption, Path => LocalPath}
import java.util.concurrent.ConcurrentHashMap

import scala.annotation.tailrec
import scala.util.Try

/** A lock on a file in the log folder, which processes get in the order in which they ask. The file
  * is created when two processes first compete for a version, and stays. It counts the turns.
  *
  * Each place in the line is a lock on one byte of the file; byte 0 is the turn. A process moves up
  * when it asks: it locks the byte before its own and lets go of its own, so nobody overtakes it.
  * Once all places are taken, those outside are in no order. The operating system releases the
  * locks when their process ends.
  *
  * The file is open only while a place is held. A queue closes it before another queue of this JVM
  * opens it, because closing a file releases all locks that the process has on it.
  */
final private[coordinator] class FileProcessLock(log: TableLog) extends ProcessLock {
  import FileProcessLock._
  import ProcessLock._

  private val folder = new LocalFolder(log).path
  private val file = Try(folder.toRealPath()).getOrElse(folder).resolve(Name)
  private var place: Option[FileLock] = scala.None
  private var isUsable = true

  override def isWanted: Boolean =
    place.isEmpty && Files.exists(file, LinkOption.NOFOLLOW_LINKS) && {
      val answer = ask()
      release()
      answer.isInstanceOf[Theirs]
    }

  override def ask(): Answer =
    if (hasTurn) Mine
    else if (!isUsable) Missing
    else if (place.isEmpty && !inUse.add(file)) OfThisJvm
    else
      try {
        val answer = asked(place.fold(opened())(_.channel))
        if (place.isEmpty) leave()
        answer
      } catch {
        case _: ClosedByInterruptException =>
          leave()
          Theirs(System.nanoTime)
        // By another class loader, or by another name of the folder.
        case _: OverlappingFileLockException =>
          leave()
          OfThisJvm
        // The file may belong to another user, or the file system may not support locks.
        case _: IOException | _: UnsupportedOperationException =>
          isUsable = false
          leave()
          Missing
      }

  private def opened() = {
    val isNew = !Files.exists(file, LinkOption.NOFOLLOW_LINKS)
    val channel = FileChannel.open(file, CREATE, READ, WRITE, LinkOption.NOFOLLOW_LINKS)
    if (isNew) Try(QuickLocalFileSystem.permit(file, log.conf)): Unit // or another one made it
    channel
  }

  private def asked(channel: FileChannel): Answer =
    try {
      moveUp(channel)
      val turn = turnOf(channel)
      if (hasTurn) {
        channel.write(ByteBuffer.allocate(java.lang.Long.BYTES).putLong(turn + 1).flip(), 0): Unit
        Mine
      } else Theirs(turn)
    } finally if (place.isEmpty) channel.close()

  @tailrec private def moveUp(channel: FileChannel): Unit = {
    val next = place.fold(Places)(_.position) - 1
    val isFree = next >= 0 && Option(channel.tryLock(next, 1, false)).exists { lock =>
      place.foreach(_.release())
      place = Some(lock)
      true
    }
    if (isFree) moveUp(channel)
  }

  private def hasTurn = place.exists(_.position == 0)

  private def turnOf(channel: FileChannel): Long = {
    val read = ByteBuffer.allocate(java.lang.Long.BYTES)
    channel.read(read, 0): Unit
    if (read.hasRemaining) 0 else read.flip().getLong
  }

  override def release(): Unit = if (place.nonEmpty) leave()

  private def leave(): Unit = {
    place.foreach(lock => Try(lock.channel.close()))
    place = scala.None
    inUse.remove(file): Unit
  }
}

private[coordinator] object FileProcessLock {
  val Name = "_interlock.turn"

  /** How many processes are in order, with the one that has the turn. */
  private val Places = 17L

  /** Another queue of this JVM has the turn or a place in the line. */
  private val OfThisJvm = ProcessLock.Theirs(-1)

  /** The lock files that queues of this JVM have open. */
  private val inUse = ConcurrentHashMap.newKeySet[LocalPath]()
}
