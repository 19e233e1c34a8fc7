package io.interlock.rules.rebase

import scala.collection.mutable

import io.interlock.rules.Overlap

/** The rebases over deletion vectors, as functions on what jobs did to files (docs/how-it-works.md,
  * "Rows that a compaction moved").
  *
  * Each rewrites an attempt so that it is right after one winner; several winners are handled in
  * the order of their versions. A Left is the reason why that cannot be proved safe, as a clause to
  * follow "because".
  *
  * @param vectors
  *   the rows of a deletion vector by its token; never asked for the empty token
  * @param rowIds
  *   of the files of the compaction whose rows are followed
  */
final class Rebases(vectors: String => RowSet, rowIds: RowIds = RowIds.Unknown) {

  /** REMAP_ROWS: rows that a MUTATE marks dead in files which a compaction replaced are marked dead
    * in the compaction's outputs.
    *
    * The rank of row `p` of a file is `p` minus the number of rows before it that were dead when
    * the compaction read the file. A segment says where the row of this rank is now. Rows of a file
    * without segments are found by their ids.
    */
  def remapRows(changes: Seq[FileChange], winner: Compaction): Either[String, Remapped] = proved {
    val moved = changes.filter(change => winner.inputs.contains(change.path))
    Remapped(moved.map(_.path).toSet, dead(moved, winner))
  }

  /** REBASE_COMPACTION: rows that a MUTATE marked dead in the compaction's inputs are marked dead
    * in its outputs.
    *
    * An input that the MUTATE removed is no longer an input; an input whose vector grew is removed
    * with the new vector. Outputs whose rows are now all dead are kept; the caller drops them.
    */
  def rebaseCompaction(
      attempt: Compaction,
      changes: Seq[FileChange]
  ): Either[String, Compaction] = proved {
    val moved = changes.filter(change => attempt.inputs.contains(change.path))
    val marked = dead(moved, attempt)
    val inputs = moved.foldLeft(attempt.inputs) { (inputs, change) =>
      change.after.fold(inputs - change.path)(inputs.updated(change.path, _))
    }
    Compaction(inputs, attempt.outputs.map(o => o.copy(dead = marked.getOrElse(o.path, o.dead))))
  }

  /** SUPERSEDE: a compaction of a whole scope removes the outputs of a compaction of a part of it.
    *
    * The live rows of these outputs must all be rows that the attempt copied. The attempt's lineage
    * then starts at the outputs, so that a MUTATE that began before both can follow its rows
    * through both.
    *
    * @param vectorOf
    *   the token of the vector with which the winner added an output
    */
  def supersede(
      attempt: Compaction,
      winner: Compaction,
      vectorOf: String => String
  ): Either[String, Compaction] = proved {
    if ((attempt.outputs ++ winner.outputs).exists(_.segments.isEmpty)) throw Unproved.unordered
    val shared = attempt.inputs.keySet.intersect(winner.inputs.keySet)
    shared.foreach { path =>
      if (attempt.inputs(path) != winner.inputs(path)) throw Unproved.otherVector(path)
    }
    val went = alive(winner, shared)
    val outputs = attempt.outputs.map { output =>
      output.copy(segments = joined(output.segments.flatMap { segment =>
        if (!shared(segment.source)) Seq(segment)
        else went.get(segment.source).fold(unplaced(segment))(compose(segment, _, vectorOf))
      }))
    }
    val replaced = winner.outputs.filter(_.segments.exists(segment => shared(segment.source)))
    checkTakesAll(replaced, outputs)
    Compaction(attempt.inputs -- shared ++ replaced.map(o => o.path -> vectorOf(o.path)), outputs)
  }

  /** BY_ROWS: all dead rows of each file that both jobs changed.
    *
    * Both must have started from the same deletion vector of the file, and must not have marked the
    * same row. A Left says what the winner did, as a clause to follow its name.
    */
  def uniteRows(
      attempt: Seq[FileChange],
      winner: Seq[FileChange]
  ): Either[String, Map[String, RowSet]] = proved {
    val theirs = winner.map(change => change.path -> change).toMap
    attempt.flatMap(mine => theirs.get(mine.path).map(mine -> _)).map { case (mine, their) =>
      if (mine.before != their.before) throw new Unproved("the file had another deletion vector")
      (mine.after, their.after) match {
        case (Some(marked), Some(current)) =>
          (mine.path, grown(mine, marked), grown(their, current), rows(current))
        case _ => throw new Unproved(
            "one of them changed it as a whole (rows of one file are told apart only where both jobs " +
              "write deletion vectors)"
          )
      }
    }
  }.left.map(Rebases.inOneFile).flatMap { grew =>
    val both = grew.map { case (_, my, other, _) => my.size - my.minus(other).size }.sum
    if (both > 0) Left(Rebases.sameRows(Overlap.counted(both)))
    else Right(grew.map { case (path, my, _, current) => path -> my.union(current) }.toMap)
  }

  /** All dead rows of each output in which changes to the compaction's inputs mark rows dead. */
  private def dead(changes: Seq[FileChange], compaction: Compaction): Map[String, RowSet] =
    if (changes.isEmpty) Map.empty
    else {
      val went = Placement.of(compaction.outputs)
      val marks = mutable.Map.empty[String, RowSet.Builder]
      val untold = changes.flatMap { change =>
        if (change.before != compaction.inputs(change.path))
          throw Unproved.otherVector(change.path)
        val killed = change.after.map(grown(change, _))
        if (killed.exists(_.isEmpty)) None
        else went.get(change.path).fold(Option(dying(change, killed))) { placement =>
          val builder = marks.getOrElseUpdate(_: String, new RowSet.Builder)
          killed.fold {
            if (placement.missing > growth(placement, change.before))
              throw Unproved.incomplete(change.path)
            placement.killAll(builder)
          }(placement.kill(_, rows(placement.vector), builder))
          None
        }
      }
      val byIds = if (untold.isEmpty) Map.empty[String, RowSet] else RowIds.follow(untold, rowIds)
      compaction.outputs.flatMap { output =>
        val marked = (marks.get(output.path).map(_.result()) ++ byIds.get(output.path))
          .filterNot(_.isEmpty)
        Option.when(marked.nonEmpty)(output.path -> marked.foldLeft(output.dead)(_ union _))
      }.toMap
    }

  private def dying(change: FileChange, killed: Option[RowSet]): Dying =
    killed.fold(Dying(change.path, rows(change.before), allBut = true))(Dying(change.path, _))

  private def grown(change: FileChange, after: String): RowSet = {
    val (old, all) = (rows(change.before), rows(after))
    if (!old.minus(all).isEmpty)
      throw new Unproved(s"dead rows of ${change.path} came back to life")
    all.minus(old)
  }

  private def rows(token: String): RowSet = if (token.isEmpty) RowSet.empty else vectors(token)

  /** The number of rows of a file that were marked dead after the compaction read it.
    *
    * @param newer
    *   the vector with which the compaction removed the file
    */
  private def growth(placement: Placement, newer: String): Long =
    if (newer == placement.vector) 0 else rows(newer).size - rows(placement.vector).size

  /** The new places of the rows that were alive when the winner removed the shared inputs. */
  private def alive(winner: Compaction, shared: Set[String]): Map[String, Placement] = {
    val dead = winner.outputs.map(output => output.path -> output.dead).toMap
    Placement.of(winner.outputs).collect {
      case (path, went) if shared(path) =>
        val living = went.alive(winner.inputs(path), dead)
        if (went.missing + went.rows - living.rows > growth(went, winner.inputs(path)))
          throw Unproved.incomplete(path)
        path -> living
    }
  }

  /** A segment of the attempt, expressed as segments of the winner's outputs. */
  private def compose(
      segment: Segment,
      went: Placement,
      vectorOf: String => String
  ): Seq[Segment] = {
    if (segment.vector != went.vector) throw Unproved.otherVector(segment.source)
    val composed =
      for {
        Piece(earlier, output) <- went.pieces
        from = math.max(segment.start, earlier.start)
        rows = math.min(segment.end, earlier.end) - from
        if rows > 0
      } yield Segment(
        source = output,
        vector = vectorOf(output),
        start = earlier.target + from - earlier.start,
        rows = rows,
        target = segment.target + from - segment.start
      )
    if (composed.map(_.rows).sum != segment.rows) throw Unproved.incomplete(segment.source)
    composed
  }

  /** Joins segments that continue one another. */
  private def joined(segments: Seq[Segment]): Seq[Segment] =
    segments.foldLeft(Vector.empty[Segment]) {
      case (joined :+ last, next) if next.continues(last) =>
        joined :+ last.copy(rows = last.rows + next.rows)
      case (joined, next) => joined :+ next
    }

  /** A file that the winner recorded no places for must have no live rows. */
  private def unplaced(segment: Segment): Seq[Segment] =
    if (segment.rows > 0) throw Unproved.unrecorded(segment.source) else Nil

  private def checkTakesAll(replaced: Seq[Output], outputs: Seq[Output]): Unit = {
    val taken = outputs.flatMap(_.segments).groupMapReduce(_.source)(_.rows)(_ + _)
    replaced.foreach { output =>
      if (taken.getOrElse(output.path, 0L) != output.rows - output.dead.size)
        throw new Unproved(s"${output.path} also holds rows that were not to be compacted")
    }
  }

  private def proved[A](rebase: => A): Either[String, A] =
    try Right(rebase)
    catch { case unproved: Unproved => Left(unproved.reason) }
}

object Rebases {

  /** Why changes of one file cannot be united: what the winner did, as a clause to follow its name. */
  def inOneFile(reason: String): String = s"changed a file that it changes too, and $reason"

  /** What a winner did that changed rows which an attempt changes, likewise. */
  def sameRows(counted: String): String = s"changed $counted that it changes too"
}
