package io.interlock.rules.rebase

import scala.collection.mutable.ArrayBuilder

import org.roaringbitmap.RelativeRangeConsumer
import org.roaringbitmap.longlong.Roaring64Bitmap

/** An immutable set of row indexes of one file, counted from 0.
  *
  * Runs of rows cost the same whatever their length: no method visits the rows of a run one by one.
  */
final class RowSet private (private val bitmap: Roaring64Bitmap) {
  def size: Long = bitmap.getLongCardinality
  def isEmpty: Boolean = bitmap.isEmpty
  def contains(row: Long): Boolean = bitmap.contains(row)

  def union(other: RowSet): RowSet =
    if (isEmpty) other
    else if (other.isEmpty) this
    else new RowSet(Roaring64Bitmap.or(bitmap, other.bitmap))

  def minus(other: RowSet): RowSet =
    if (isEmpty || other.isEmpty) this
    else new RowSet(Roaring64Bitmap.andNot(bitmap, other.bitmap))

  /** How many rows of the set are less than `row`. */
  def before(row: Long): Long = if (row <= 0) 0 else bitmap.rankLong(row - 1)

  /** Calls `f(from, until)` for each longest run of rows, in ascending order. */
  def foreachRange(f: (Long, Long) => Unit): Unit = if (!isEmpty) {
    val runs = new RowSet.Runs(f)
    val last = bitmap.last
    Iterator.iterate(bitmap.first)(_ + RowSet.Window).takeWhile(_ <= last).foreach { start =>
      runs.start = start
      bitmap.forAllInRange(start, math.min(RowSet.Window, last - start + 1).toInt, runs)
    }
    runs.finish()
  }

  /** The runs as `from, until, from, until, ...`. */
  private[rebase] def bounds: Array[Long] = {
    val bounds = new ArrayBuilder.ofLong // builders of unknown type box
    foreachRange { (from, until) =>
      bounds += from
      bounds += until
    }
    bounds.result()
  }

  override def equals(other: Any): Boolean = other match {
    case that: RowSet =>
      size == that.size && Roaring64Bitmap.andCardinality(bitmap, that.bitmap) == size
    case _ => false
  }

  override def hashCode: Int = if (isEmpty) 0 else (size, bitmap.first, bitmap.last).hashCode

  override def toString: String = {
    val text = new StringBuilder
    foreachRange((from, until) => text.append(s" $from until $until"))
    s"RowSet($text )"
  }
}

object RowSet {
  val empty: RowSet = new RowSet(new Roaring64Bitmap)

  def of(rows: Long*): RowSet = build(add => rows.foreach(add))

  def range(from: Long, until: Long): RowSet = {
    val builder = new Builder
    builder.addRange(from, until)
    builder.result()
  }

  /** The rows which `fill` passes to the function it gets, in any order; ascending is fastest. */
  def build(fill: (Long => Unit) => Unit): RowSet = {
    val builder = new Builder
    fill(row => builder.addRange(row, row + 1))
    builder.result()
  }

  /** Collects rows and ranges, in any order; joins those that follow one another. */
  final private[rebase] class Builder {
    private val bitmap = new Roaring64Bitmap
    private var from, until = 0L

    def addRange(first: Long, end: Long): Unit =
      if (first < end) {
        if (first != until) {
          flush()
          from = first
        }
        until = end
      }

    /** Leaves the builder to nobody: the set owns its bitmap. */
    def result(): RowSet = {
      flush()
      new RowSet(bitmap)
    }

    /** `addRange` is fast only where the range ends with a container of the bitmap (2^16 rows):
      * otherwise it starts over until it has counted past the container's end.
      */
    private def flush(): Unit = {
      val aligned = until >> 16 << 16
      if (from < aligned) bitmap.addRange(from, aligned)
      val rest = math.max(from, aligned)
      if (until - rest < 64) (rest until until).foreach(bitmap.addLong)
      else {
        val tail = new Roaring64Bitmap
        tail.addRange(rest, aligned + (1L << 16))
        val behind = new Roaring64Bitmap
        behind.addRange(until, aligned + (1L << 16))
        tail.andNot(behind)
        bitmap.or(tail)
      }
    }
  }

  /** How many rows the bitmap is asked for at once: it counts them in an Int. */
  private val Window = 1L << 30

  /** Joins what the bitmap tells of its rows, container by container, to longest runs. */
  final private class Runs(f: (Long, Long) => Unit) extends RelativeRangeConsumer {
    var start = 0L
    private var from, until = 0L

    def finish(): Unit = if (from < until) f(from, until)

    override def acceptAllPresent(relativeFrom: Int, relativeTo: Int): Unit = {
      if (start + relativeFrom != until) {
        finish()
        from = start + relativeFrom
      }
      until = start + relativeTo
    }
    override def acceptPresent(position: Int): Unit = acceptAllPresent(position, position + 1)
    override def acceptAbsent(position: Int): Unit = ()
    override def acceptAllAbsent(relativeFrom: Int, relativeTo: Int): Unit = ()
  }
}
