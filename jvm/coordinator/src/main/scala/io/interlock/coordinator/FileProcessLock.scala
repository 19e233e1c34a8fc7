package io.interlock.coordinator

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.{ClosedByInterruptException, FileChannel, FileLock}
import java.nio.file.StandardOpenOption.{CREATE, READ, WRITE}
import java.nio.file.{Files, LinkOption, Path => LocalPath}
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

/** A lock on a file in the log folder. The file is created when two processes first compete for a
  * version, and stays. The operating system releases the lock when its process ends. The file
  * counts the turns.
  *
  * The file is open only while the lock is held. A queue closes it before another queue of this JVM
  * opens it, because closing a file releases all locks that the process has on it.
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
        // The file may belong to another user, or the file system may not support locks.
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

  /** The lock files that queues of this JVM have open. */
  private val inUse = ConcurrentHashMap.newKeySet[LocalPath]()
}
