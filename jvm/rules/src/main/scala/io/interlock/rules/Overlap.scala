package io.interlock.rules

/** Where two jobs overlap, for the verdicts that compare files or rows (BY_FILES, BY_ROWS).
  *
  * @param kind
  *   the kind of error that it is raised as
  * @param why
  *   why the later job fails, as a clause
  * @param files
  *   files in which they overlap, by their paths in the table's log
  * @param rows
  *   a few of the overlapping rows, as JSON objects with the columns that the predicate names
  * @param sourceRows
  *   for each of them a row of the later job's source that matches it, likewise
  * @param predicate
  *   the later job's predicate that matched the rows or could not be decided, as SQL
  * @param undecided
  *   whether the predicate could not be decided
  */
final case class Overlap(
    kind: ConflictKind.OfData,
    why: String,
    files: Seq[String] = Nil,
    rows: Seq[String] = Nil,
    sourceRows: Seq[String] = Nil,
    predicate: Option[String] = None,
    undecided: Boolean = false
)

object Overlap {

  /** At most so many files and rows are named. */
  val FilesShown = 5
  val RowsShown = 3
}
