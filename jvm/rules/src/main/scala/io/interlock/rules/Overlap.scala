package io.interlock.rules

/** Where two jobs overlap, for the verdicts that compare files or rows (BY_FILES, BY_ROWS).
  *
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
    files: Seq[String] = Nil,
    rows: Seq[String] = Nil,
    sourceRows: Seq[String] = Nil,
    predicate: Option[String] = None,
    undecided: Boolean = false
) {

  /** Whether the predicate selects rows that the winner changed, which no partitions would part. */
  def areRowsKnown: Boolean = predicate.nonEmpty && !undecided && rows.nonEmpty
}

object Overlap {

  /** At most so many files and rows are named. */
  val FilesShown = 5
  val RowsShown = 3

  /** As many rows in words; just "rows" if none is named or there may be more. */
  def counted(rows: Seq[String]): String =
    if (rows.isEmpty || rows.size == RowsShown) "rows" else counted(rows.size.toLong)

  def counted(rows: Long): String = if (rows == 1) "1 row" else s"$rows rows"

  /** The beginning of a long predicate, for a sentence. */
  def short(sql: String): String =
    if (sql.length <= 80) sql
    else sql.take(if (sql(79).isHighSurrogate) 79 else 80) + " ..."
}

/** What a winner did that makes a later job fail.
  *
  * @param kind
  *   the kind of error that it is raised as
  * @param did
  *   a clause to follow the winner's name
  */
final case class Clash(kind: ConflictKind.OfData, did: String, where: Overlap = Overlap())
