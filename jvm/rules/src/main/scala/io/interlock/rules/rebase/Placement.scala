package io.interlock.rules.rebase

import scala.annotation.tailrec
import scala.util.control.NoStackTrace

/** The places of the rows of one file in a compaction's outputs.
  *
  * @param pieces
  *   its segments in the order of its rank space; none overlap
  */
final private[rebase] class Placement private (source: String, val pieces: IndexedSeq[Piece]) {

  /** The deletion vector with which the compaction read the file, by its token. */
  def vector: String = pieces.head.segment.vector

  /** The number of rows whose place is known. */
  def rows: Long = pieces.map(_.segment.rows).sum

  /** The number of ranks before the end of the last piece that are in no piece: their output was
    * dropped because all its rows were dead.
    */
  def missing: Long = pieces.last.segment.end - rows

  /** Marks the new places of all rows. */
  def killAll(marks: String => RowSet.Builder): Unit =
    pieces.foreach { case Piece(segment, output) =>
      marks(output).addRange(segment.target, segment.target + segment.rows)
    }

  /** Marks the new places of some rows, in one pass over rows, vector and pieces.
    *
    * @param rows
    *   rows of the file
    * @param gone
    *   the rows of [[vector]]
    * @param marks
    *   the dead rows to add to, by output
    */
  def kill(rows: RowSet, gone: RowSet, marks: String => RowSet.Builder): Unit = {
    if (rows.minus(gone).size < rows.size)
      throw new Unproved(s"rows of $source die that the compaction had found dead")
    val (dying, absent) = (rows.bounds, gone.bounds)
    val into = pieces.map(piece => marks(piece.output))
    // Before row `row` of run `run` there are `before` dead rows and all pieces up to `at`.
    @tailrec def mark(run: Int, row: Long, skip: Int, before: Long, at: Int): Unit = {
      val rank = row - before
      if (skip < absent.length && absent(skip) < row)
        mark(run, row, skip + 2, before + absent(skip + 1) - absent(skip), at)
      else if (at == pieces.length) throw Unproved.incomplete(source)
      else if (pieces(at).segment.end <= rank) mark(run, row, skip, before, at + 1)
      else {
        val segment = pieces(at).segment
        if (rank < segment.start) throw Unproved.incomplete(source)
        val until = math.min(dying(run + 1), segment.end + before)
        val target = segment.target + rank - segment.start
        into(at).addRange(target, target + until - row)
        if (until < dying(run + 1)) mark(run, until, skip, before, at)
        else if (run + 2 < dying.length) mark(run + 2, dying(run + 2), skip, before, at)
      }
    }
    if (dying.nonEmpty) mark(run = 0, row = dying(0), skip = 0, before = 0, at = 0)
  }

  /** The placement of the rows that are still alive: its ranks are those under a newer vector, and
    * its places are counted among the live rows of the outputs.
    *
    * @param newer
    *   the vector with which the source was removed
    * @param dead
    *   the dead rows of the outputs; rows that are missing are dead too
    */
  def alive(newer: String, dead: String => RowSet): Placement = {
    val living = pieces.map { case Piece(segment, output) =>
      val before = dead(output).before(segment.target)
      val dying = dead(output).before(segment.target + segment.rows) - before
      (output, segment.rows - dying, segment.target - before)
    }
    val starts = living.scanLeft(0L)(_ + _._2)
    val moved = living.zip(starts).map { case ((output, rows, target), start) =>
      Piece(Segment(source, newer, start, rows, target), output)
    }
    new Placement(source, moved)
  }
}

/** A segment and the output which holds its rows. */
final private[rebase] case class Piece(segment: Segment, output: String)

private[rebase] object Placement {

  /** The placements of the sources of some outputs.
    *
    * @throws Unproved
    *   if the segments contradict one another
    */
  def of(outputs: Seq[Output]): Map[String, Placement] = {
    outputs.foreach(checkTargets)
    val pieces = outputs.flatMap(output => output.segments.map(Piece(_, output.path)))
    pieces.groupBy(_.segment.source).map { case (source, pieces) =>
      val ordered = pieces.sortBy(p => (p.segment.start, p.segment.rows)).toIndexedSeq
      val ends = ordered.scanLeft(0L)((_, piece) => piece.segment.end)
      if (
        ordered.zip(ends).exists { case (piece, end) => piece.segment.start < end } ||
        ordered.exists(_.segment.vector != ordered.head.segment.vector)
      ) throw Unproved.incomplete(source)
      source -> new Placement(source, ordered)
    }
  }

  /** No two segments may share a row of the output. */
  private def checkTargets(output: Output): Unit = {
    val ends = output.segments.filter(_.rows > 0).sortBy(_.target).scanLeft(0L) { (end, segment) =>
      if (segment.target < end) throw Unproved.incomplete(output.path)
      segment.target + segment.rows
    }
    if (ends.last > output.rows) throw Unproved.incomplete(output.path)
  }
}

/** Ends a rebase that cannot be proved safe.
  *
  * @param reason
  *   a clause to follow "because"
  */
final private[rebase] class Unproved(val reason: String) extends Exception(reason) with NoStackTrace

private[rebase] object Unproved {
  def unrecorded(path: String): Unproved =
    new Unproved(s"the compaction did not record where the rows of $path went")

  def unordered: Unproved = new Unproved(
    "a compaction has moved rows without recording where to, as ZORDER BY, clustering and writers " +
      "without Interlock do (ALTER TABLE ... COMPACT records it)"
  )

  def incomplete(path: String): Unproved =
    new Unproved(s"what the compaction recorded of $path does not add up")

  def otherVector(path: String): Unproved =
    new Unproved(s"the compaction read $path with another deletion vector")
}
