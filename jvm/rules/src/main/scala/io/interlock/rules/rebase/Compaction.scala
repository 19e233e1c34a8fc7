package io.interlock.rules.rebase

/** A run of rows which a compaction copied from one file into another, in order.
  *
  * The rank space of `source` is its rows without those of `vector`, counted from 0: the rows which
  * the compaction found alive. Its rows `start until start + rows` are the rows
  * `target until target + rows` of the output. A segment of no rows says that there were none.
  *
  * Deletion vectors are named by tokens here and below; the empty token is no vector.
  */
final case class Segment(source: String, vector: String, start: Long, rows: Long, target: Long) {

  /** The first row of the rank space behind it. */
  def end: Long = start + rows

  /** Whether the rows of `before` and these are one run. */
  private[rebase] def continues(before: Segment): Boolean =
    source == before.source && vector == before.vector && start == before.end &&
      target == before.target + before.rows
}

/** A file which a compaction wrote.
  *
  * @param rows
  *   how many rows it holds, dead ones included
  * @param dead
  *   rows that are dead already when the file appears in the table, or are to be
  * @param segments
  *   where its rows come from, in any order
  */
final case class Output(path: String, rows: Long, dead: RowSet, segments: Seq[Segment]) {

  /** Whether there is nothing left to read in it, so that the table need not keep it. */
  def isDead: Boolean = dead.size == rows
}

/** A compaction of one winner or attempt.
  *
  * @param inputs
  *   the files it removes, and for each the token of the vector which it removes it with
  */
final case class Compaction(inputs: Map[String, String], outputs: Seq[Output])

/** What a MUTATE did to a file that was there.
  *
  * @param before
  *   token of the vector which it removed the file with
  * @param after
  *   token of the vector which it added the file again with; None where it did not: all rows are
  *   dead or copied into other files
  */
final case class FileChange(path: String, before: String, after: Option[String])

/** What REMAP_ROWS makes of a MUTATE's changes.
  *
  * @param replaced
  *   the files which the compaction removed: the MUTATE removes and adds them no longer
  * @param dead
  *   for each output in which the MUTATE kills rows, all its dead rows, old and new
  */
final case class Remapped(replaced: Set[String], dead: Map[String, RowSet])
