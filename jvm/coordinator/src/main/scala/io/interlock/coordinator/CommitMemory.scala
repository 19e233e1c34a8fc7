package io.interlock.coordinator

import java.lang.ref.WeakReference

import scala.annotation.tailrec
import scala.collection.mutable

/** Limits how many commits the queues of a process keep together. If there are too many, the oldest
  * are dropped, of whichever table. A commit that exceeds the limit alone is not kept.
  *
  * @param most
  *   the limit in characters
  */
final private[coordinator] class CommitMemory(private var most: Long) {
  import CommitMemory._

  // All guarded by `this`. Commits that a queue has forgotten still count until they are the
  // oldest.
  private val kept = mutable.Queue.empty[Kept]
  private var size = 0L

  /** Counts commits that `queue` now keeps, and drops the oldest ones that exceed the limit. */
  def keep(queue: CommitQueue, bodies: Seq[CommitBody]): Unit = {
    val owner = new WeakReference(queue)
    val tooMany = synchronized {
      val (fitting, tooLarge) = bodies.map(Kept.by(owner, _)).partition(_.characters <= most)
      kept ++= fitting
      size += fitting.map(_.characters).sum
      surplus(tooLarge.toList)
    }
    drop(tooMany)
  }

  /** Sets another limit, and drops the oldest commits that exceed it. */
  def limit(most: Long): Unit = drop(synchronized {
    this.most = most
    surplus(Nil)
  })

  /** Done without the lock of this object, since each queue takes its own lock. */
  private def drop(tooMany: Seq[Kept]): Unit =
    tooMany.foreach(old => Option(old.owner.get).foreach(_.drop(old.version)))

  /** How many characters are kept, or were until their queue has forgotten them. */
  def characters: Long = synchronized(size)

  @tailrec private def surplus(found: List[Kept]): List[Kept] =
    if (size <= most) found
    else {
      val oldest = kept.dequeue()
      size -= oldest.characters
      surplus(oldest :: found)
    }
}

private[coordinator] object CommitMemory {

  /** 64 million characters, or a sixteenth of the heap if that is less. */
  def default: Long = (64L << 20).min(Runtime.getRuntime.maxMemory / 16)

  /** Shared by all queues. */
  val ofProcess = new CommitMemory(default)

  final private case class Kept(owner: WeakReference[CommitQueue], version: Long, characters: Long)

  private object Kept {
    def by(owner: WeakReference[CommitQueue], body: CommitBody): Kept =
      Kept(owner, body.version, body.lines.iterator.map(_.length.toLong).sum)
  }
}
