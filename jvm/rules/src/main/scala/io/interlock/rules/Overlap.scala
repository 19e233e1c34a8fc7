package io.interlock.rules

/** Where two jobs met whose policy asks for it (BY_FILES, BY_ROWS).
  *
  * @param kind
  *   the error that it is raised as
  * @param why
  *   why the later job fails, as a clause
  * @param files
  *   files in which they met, as the table's log names them
  * @param rows
  *   a few of the rows that met, as JSON objects of the columns that the predicate names
  * @param predicate
  *   the later job's predicate that selected the rows or could not be decided, as SQL
  * @param undecided
  *   whether it could not be decided
  */
final case class Overlap(
    kind: ConflictKind.OfData,
    why: String,
    files: Seq[String] = Nil,
    rows: Seq[String] = Nil,
    predicate: Option[String] = None,
    undecided: Boolean = false
)

object Overlap {

  /** The most files and rows that are named. */
  val FilesShown = 5
  val RowsShown = 3
}
