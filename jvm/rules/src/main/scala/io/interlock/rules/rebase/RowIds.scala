package io.interlock.rules.rebase

/** Rows of a file that die.
  *
  * @param rows
  *   these rows; if `allBut`, all rows but these
  */
final case class Dying(path: String, rows: RowSet, allBut: Boolean = false) {
  def contains(row: Long): Boolean = rows.contains(row) != allBut
}

/** Rows of a file, and their ids. A file may be described in parts. */
final case class IdentifiedRows(path: String, rows: RowSet, ids: RowSet)

/** The row ids of a compaction's files, which say where rows went if no tag does. A Left is the
  * reason why they cannot be read, as a clause to follow "because".
  */
trait RowIds {

  /** Rows of inputs. */
  def of(dying: Seq[Dying]): Either[String, Seq[IdentifiedRows]]

  /** All rows of outputs that have one of these ids.
    *
    * @param sources
    *   the inputs whose rows they are
    */
  def having(ids: RowSet, sources: Seq[String]): Either[String, Seq[IdentifiedRows]]
}

object RowIds {

  /** Of files without row ids. */
  object Unknown extends RowIds {
    private val unknown = Left("its files have no row ids")
    def of(dying: Seq[Dying]): Either[String, Seq[IdentifiedRows]] = unknown
    def having(ids: RowSet, sources: Seq[String]): Either[String, Seq[IdentifiedRows]] = unknown
  }

  /** The places in the outputs of rows that die, by their ids.
    *
    * @throws Unproved
    *   unless each row is in the outputs exactly once
    */
  private[rebase] def follow(dying: Seq[Dying], rowIds: RowIds): Map[String, RowSet] = {
    val gone = proved(rowIds.of(dying))
    val here = gone.groupMapReduce(_.path)(_.rows)(_ union _)
    dying.find(file => !file.allBut && !here.get(file.path).contains(file.rows))
      .foreach(file => throw new Unproved(s"${file.path} has not all the rows that die in it"))
    val ids = idsOf(gone)
    val found = proved(rowIds.having(ids, dying.map(_.path)))
    val (wanted, places) = (countOf(gone), countOf(found))
    if (ids.size != wanted || idsOf(found) != ids || places != wanted)
      throw new Unproved(
        s"of $wanted rows ${idsOf(found).size} were found by their ids, in $places places"
      )
    found.groupMapReduce(_.path)(_.rows)(_ union _)
  }

  private def proved[A](read: Either[String, A]): A =
    read.fold(reason => throw new Unproved(reason), identity)

  private def countOf(rows: Seq[IdentifiedRows]): Long = rows.map(_.rows.size).sum
  private def idsOf(rows: Seq[IdentifiedRows]): RowSet =
    rows.foldLeft(RowSet.empty)((ids, part) => ids.union(part.ids))
}
