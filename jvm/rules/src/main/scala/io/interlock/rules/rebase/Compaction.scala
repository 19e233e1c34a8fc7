package io.interlock.rules.rebase

/** A run of rows which a compaction copied from one file into another, in order.
  *
  * The rank space of `source` is the rows that the compaction found alive, counted from 0: all rows
  * that are not in `vector`. Its rows `start until start + rows` are the rows `target until target
  * + rows` of the output. A segment of no rows says that the source had no live rows.
  *
  * Here and below a deletion vector is identified by a token; the empty token means that there is
  * none.
  */
final case class Segment(source: String, vector: String, start: Long, rows: Long, target: Long) {

  /** The first rank after the segment. */
  def end: Long = start + rows

  /** Whether these rows directly follow those of `before`, in source and output. */
  private[rebase] def continues(before: Segment): Boolean =
    source == before.source && vector == before.vector && start == before.end &&
      target == before.target + before.rows
}

/** A file which a compaction wrote.
  *
  * @param rows
  *   the number of its rows, dead ones included
  * @param dead
  *   rows that are dead when the file is added to the table, or that the rebase marks dead
  * @param segments
  *   the sources of its rows, in any order
  */
final case class Output(path: String, rows: Long, dead: RowSet, segments: Seq[Segment])

/** The compaction that a winner or an attempt made.
  *
  * @param inputs
  *   the files that it removes, each with the token of the vector with which it removes it
  */
final case class Compaction(inputs: Map[String, String], outputs: Seq[Output])

/** A change that a MUTATE made to an existing file.
  *
  * @param before
  *   token of the vector with which it removed the file
  * @param after
  *   token of the vector with which it added the file again; None if it did not, because all rows
  *   are dead or were copied into other files
  */
final case class FileChange(path: String, before: String, after: Option[String])

/** The result of REMAP_ROWS: a MUTATE's changes after a compaction.
  *
  * @param replaced
  *   the files that the compaction removed, which the MUTATE therefore no longer removes and adds
  * @param dead
  *   all dead rows of each output in which the MUTATE marks rows dead
  */
final case class Remapped(replaced: Set[String], dead: Map[String, RowSet])
