package io.interlock.rules.rebase

import scala.annotation.tailrec
import scala.collection.immutable.TreeMap
import scala.collection.mutable

import org.roaringbitmap.{RelativeRangeConsumer, RoaringBitmap}

/** An immutable set of row indexes of one file, counted from 0; or of row ids.
  *
  * The cost of a run of rows does not depend on its length: no method visits the rows of a run one
  * by one.
  *
  * @param words
  *   the low 32 bits of the rows by their high 32 bits; no bitmap is empty, and none is modified
  */
final class RowSet private (private val words: TreeMap[Long, RoaringBitmap]) extends Serializable {
  val size: Long = words.valuesIterator.map(_.getLongCardinality).sum
  def isEmpty: Boolean = words.isEmpty
  def contains(row: Long): Boolean = words.get(row >> 32).exists(_.contains(row.toInt))

  def union(other: RowSet): RowSet =
    new RowSet(other.words.foldLeft(words) { case (union, (high, bitmap)) =>
      union.updatedWith(high)(mine => Some(mine.fold(bitmap)(RoaringBitmap.or(_, bitmap))))
    })

  def minus(other: RowSet): RowSet =
    new RowSet(other.words.foldLeft(words) { case (rest, (high, bitmap)) =>
      rest.updatedWith(high)(_.map(RoaringBitmap.andNot(_, bitmap)).filterNot(_.isEmpty))
    })

  /** The number of rows in the set that are less than `row`. */
  def before(row: Long): Long = if (row <= 0) 0
  else {
    val high = (row - 1) >> 32
    val whole = words.rangeUntil(high).valuesIterator.map(_.getLongCardinality).sum
    whole + words.get(high).fold(0L)(_.rankLong((row - 1).toInt))
  }

  /** Calls `f(from, until)` for each longest run of rows, in ascending order. */
  def foreachRange(f: (Long, Long) => Unit): Unit = {
    val runs = new RowSet.Runs(f)
    for ((high, bitmap) <- words; quarter <- 0 until 4) { // a bitmap counts in an Int
      runs.start = (high << 32) + (quarter.toLong << 30)
      bitmap.forAllInRange(quarter << 30, 1 << 30, runs)
    }
    runs.finish()
  }

  /** The runs as `from, until, from, until, ...`. */
  private[rebase] def bounds: Array[Long] = {
    var at = 0
    foreachRange((_, _) => at += 2)
    val bounds = new Array[Long](at)
    at = 0
    foreachRange { (from, until) =>
      bounds(at) = from
      bounds(at + 1) = until
      at += 2
    }
    bounds
  }

  override def equals(other: Any): Boolean = other match {
    case that: RowSet => size == that.size && minus(that).isEmpty
    case _ => false
  }

  override def hashCode: Int = size.hashCode // equal bitmaps may have different ones

  override def toString: String = {
    val text = new StringBuilder
    foreachRange((from, until) => text.append(s" $from until $until"))
    s"RowSet($text )"
  }
}

object RowSet {
  val empty: RowSet = new RowSet(TreeMap.empty)

  def of(rows: Long*): RowSet = build(add => rows.foreach(add))

  def range(from: Long, until: Long): RowSet = {
    val builder = new Builder
    builder.addRange(from, until)
    builder.result()
  }

  /** The set of the rows that `fill` passes to its argument, in any order; ascending order is
    * fastest.
    */
  def build(fill: (Long => Unit) => Unit): RowSet = {
    val builder = new Builder
    fill(row => builder.addRange(row, row + 1))
    builder.result()
  }

  /** Collects rows and ranges in any order, and joins adjacent ones. */
  final class Builder {
    private val words = mutable.LongMap.empty[RoaringBitmap]
    private var from, until = 0L

    def addRange(first: Long, end: Long): Unit =
      if (first < end) {
        if (first != until) {
          flush(from)
          from = first
        }
        until = end
      }

    /** The set takes over the bitmaps: the builder must not be used afterwards. */
    def result(): RowSet = {
      flush(from)
      words.foreachValue(_.runOptimize())
      new RowSet(TreeMap.from(words))
    }

    /** Adds the rows `from until until`, word by word. */
    @tailrec private def flush(from: Long): Unit = if (from < until) {
      val bitmap = words.getOrElseUpdate(from >> 32, new RoaringBitmap)
      val word = from >> 32 << 32
      val end = math.min(until, word + (1L << 32))
      if (end == from + 1) bitmap.add(from.toInt) else bitmap.add(from - word, end - word)
      flush(end)
    }
  }

  /** Joins the runs that bitmaps report, container by container, into the longest runs. */
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
