package io.interlock.rules.rebase

import scala.annotation.tailrec
import scala.util.control.NoStackTrace

/** Where the rows of one file went in a compaction.
  *
  * @param pieces
  *   its segments in the order of its rank space; none overlap
  */
final private[rebase] class Placement private (source: String, val pieces: IndexedSeq[Piece]) {

  /** The vector of the rank space. */
  def vector: String = pieces.head.segment.vector

  /** How many rows went where the pieces say. */
  def rows: Long = pieces.map(_.segment.rows).sum

  /** How many rows of the rank space, up to the end of the last piece, are in no piece. Those of an
    * output that was dropped, as all its rows had died, are so missing.
    */
  def missing: Long = pieces.last.segment.end - rows

  /** Marks the places of all rows. */
  def killAll(marks: String => RowSet.Builder): Unit =
    pieces.foreach { case Piece(segment, output) =>
      marks(output).addRange(segment.target, segment.target + segment.rows)
    }

  /** Marks the places of some rows: one pass over rows, vector and pieces together.
    *
    * @param rows
    *   rows of the file
    * @param gone
    *   the rows of [[vector]]
    * @param marks
    *   what to mark in, by output
    */
  def kill(rows: RowSet, gone: RowSet, marks: String => RowSet.Builder): Unit = {
    if (rows.minus(gone).size < rows.size)
      throw new Unproved(s"rows of $source die that the compaction had found dead")
    val (dying, absent) = (rows.bounds, gone.bounds)
    val into = pieces.map(piece => marks(piece.output))
    // The row `row` of the run `run` has `before` absent rows and the pieces up to `at` behind it.
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

  /** The same among the rows that are alive now: ranks in the rank space of a newer vector, places
    * among the live rows of the outputs.
    *
    * @param newer
    *   the vector which the source was removed with
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
    *   where the segments contradict one another
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
  *   finishes a sentence that ends with "because"
  */
final private[rebase] class Unproved(val reason: String) extends Exception(reason) with NoStackTrace

private[rebase] object Unproved {
  def unrecorded(path: String): Unproved =
    new Unproved(s"the compaction did not record where the rows of $path went")

  def incomplete(path: String): Unproved =
    new Unproved(s"what the compaction recorded of $path does not add up")

  def otherVector(path: String): Unproved =
    new Unproved(s"the compaction read $path with another deletion vector")
}
