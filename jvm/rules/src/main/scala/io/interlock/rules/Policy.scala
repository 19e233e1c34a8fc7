package io.interlock.rules

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

/** A cell of a policy's matrix.
  *
  * @param id
  *   the cell's number in its document, such as D7; empty where the document numbers none
  */
final case class Cell(
    id: String,
    earlier: OperationClass,
    later: OperationClass,
    verdict: Verdict
) {

  /** The cell's name in texts: D7, or its two classes if it has no number. */
  def label: String = if (id.nonEmpty) id else s"$earlier -> $later"
}

/** Conflict rules as data: a table (earlier class, later class) -> verdict.
  *
  * @param name
  *   the value of the table property `interlock.policy`
  * @param source
  *   the document from which the matrix is taken
  * @param classes
  *   rows and columns of the matrix, in the document's order
  * @param compaction
  *   the class of every compaction but COMPACT MAJOR: COMPACT MINOR, OPTIMIZE, ZORDER and so on
  * @param isolation
  *   Delta's isolation level for cells with the verdict BY_FILES
  * @param cells
  *   the matrix, row by row
  */
final case class Policy(
    name: String,
    source: String,
    classes: Seq[OperationClass],
    compaction: OperationClass,
    isolation: String,
    cells: Seq[Cell]
) {

  private val byClasses = cells.map(cell => (cell.earlier, cell.later) -> cell).toMap

  /** The cell of a pair of classes; none if the policy does not have one of them. */
  def cell(earlier: OperationClass, later: OperationClass): Option[Cell] =
    byClasses.get((earlier, later))

  /** A hash of the rules: the cells by their classes, the class of compactions and the isolation
    * level, but not the policy's name, its source or the layout of its text. 16 hex digits.
    */
  lazy val digest: String = {
    val rules = cells.map(cell => s"${cell.earlier} -> ${cell.later}: ${cell.verdict}").sorted
    val normalised = (s"compaction $compaction" +: s"isolation $isolation" +: rules).mkString("\n")
    val hash = MessageDigest.getInstance("SHA-256").digest(normalised.getBytes(UTF_8))
    hash.take(8).map(byte => f"$byte%02x").mkString
  }

  /** The class of COMPACT MAJOR. */
  def majorCompaction: OperationClass =
    if (classes.contains(OperationClass.CompactMajor)) OperationClass.CompactMajor else compaction

  /** Whether the policy has such an operation: its document may not have it for tables of this
    * kind.
    */
  def permits(operation: OperationClass): Boolean =
    operation == OperationClass.Metadata || classes.contains(operation)

  /** Whether some pairs fail only if they overlap, so that all reads of the attempt count. */
  def judgesReads: Boolean = cells.exists(cell => Verdict.ifTheyOverlap(cell.verdict))

  /** Whether two jobs may change rows of one file. */
  def judgesByRows: Boolean = cells.exists(_.verdict == Verdict.ByRows)

  /** Whether a rebase of this policy maps rows; the table must then support deletion vectors. */
  def remapsRows: Boolean = cells.exists(cell => Verdict.needDeletionVectors(cell.verdict))
}
