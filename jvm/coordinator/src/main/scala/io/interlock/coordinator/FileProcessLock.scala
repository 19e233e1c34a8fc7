package io.interlock.coordinator

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.{ClosedByInterruptException, FileChannel, FileLock}
import java.nio.file.StandardOpenOption.{CREATE, READ, WRITE}
import java.nio.file.{Files, LinkOption, Path => LocalPath}
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

/** A lock on a file in the log, which is made when two processes first meet, and left there. The
  * operating system releases it when its process ends. The file counts the turns.
  *
  * The file is open as long as the lock is held, and closed by the queue that has opened it before
  * another queue of this JVM opens it: whoever closes a file gives up all locks of the process on it.
  */
final private[coordinator] class FileProcessLock(folder: LocalPath) extends ProcessLock {
  import FileProcessLock._
  import ProcessLock._

  private val file = Try(folder.toRealPath()).getOrElse(folder).resolve(Name)
  private var held: Option[FileLock] = scala.None
  private var isUsable = true

  override def isWanted: Boolean =
    held.isEmpty && Files.exists(file, LinkOption.NOFOLLOW_LINKS) && {
      val answer = ask()
      release()
      answer.isInstanceOf[Theirs]
    }

  override def ask(): Answer =
    if (held.nonEmpty) Mine
    else if (!isUsable) Missing
    else if (!inUse.add(file)) Theirs(System.nanoTime)
    else
      try {
        val answer = taken()
        if (held.isEmpty) inUse.remove(file): Unit
        answer
      } catch {
        case _: ClosedByInterruptException =>
          inUse.remove(file): Unit
          Theirs(System.nanoTime)
        // It may be another user's, or the file system may have no locks.
        case _: IOException | _: UnsupportedOperationException =>
          isUsable = false
          inUse.remove(file): Unit
          Missing
      }

  private def taken(): Answer = {
    val channel = FileChannel.open(file, CREATE, READ, WRITE, LinkOption.NOFOLLOW_LINKS)
    try {
      val lock = Option(channel.tryLock(0, 1, false))
      val turn = turnOf(channel)
      lock.fold[Answer](Theirs(turn)) { _ =>
        channel.write(ByteBuffer.allocate(java.lang.Long.BYTES).putLong(turn + 1).flip(), 0): Unit
        held = lock
        Mine
      }
    } finally if (held.isEmpty) channel.close()
  }

  private def turnOf(channel: FileChannel): Long = {
    val read = ByteBuffer.allocate(java.lang.Long.BYTES)
    channel.read(read, 0): Unit
    if (read.hasRemaining) 0 else read.flip().getLong
  }

  override def release(): Unit = held.foreach { lock =>
    held = scala.None
    Try(lock.channel.close())
    inUse.remove(file): Unit
  }
}

private[coordinator] object FileProcessLock {
  val Name = "_interlock.turn"

  /** The lock files that a queue of this JVM has open. */
  private val inUse = ConcurrentHashMap.newKeySet[LocalPath]()
}
