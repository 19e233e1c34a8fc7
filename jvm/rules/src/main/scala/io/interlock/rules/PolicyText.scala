package io.interlock.rules

/** Reads a policy from text that is laid out as the table in its document.
  *
  * {{{
  * policy     maxcompute_delta
  * source     where the matrix stands
  * cells      D
  * compaction COMPACT_MINOR
  * isolation  Serializable
  * | earlier \ later | OVERWRITE    | APPEND |
  * | OVERWRITE       | REPLACE_LIVE | FAIL   |
  * | APPEND          | REPLACE_LIVE | FAIL   |
  * }}}
  *
  * Rows end earlier, columns end later. Lines that begin with `#` are comments. `cells` numbers the
  * cells row by row and may be missing, as may `isolation`.
  */
object PolicyText {
  private val Keys = Set("policy", "source", "cells", "compaction", "isolation")

  /** @throws MalformedPolicy
    *   naming the line, and the cell where there is one
    */
  def parse(origin: String, text: String): Policy = {
    val lines = text.linesIterator.map(_.trim).zipWithIndex.map { case (l, i) => Line(i + 1, l) }
    val (table, head) = lines.filter(_.isContent).toSeq.partition(_.text.startsWith("|"))
    val fail = new Failure(origin)
    val header = readHeader(head, fail)
    val classes = readColumns(table, fail)
    val rows = table.drop(1)
    if (rows.size != classes.size)
      fail.at(
        table.head,
        s"has ${classes.size} columns but ${rows.size} rows; give one row a class"
      )
    val cells = rows.zip(classes).zipWithIndex.flatMap { case ((line, earlier), row) =>
      readRow(line, earlier, classes, fail).zipWithIndex.map { case (verdict, column) =>
        val id = header.get("cells").fold("")(_ + (row * classes.size + column + 1))
        Cell(id, earlier, classes(column), verdict)
      }
    }
    def value(key: String) =
      header.getOrElse(key, fail.at(Line(1, ""), s"has no line '$key'; add it"))
    Policy(
      name = value("policy"),
      source = value("source"),
      classes = classes,
      compaction = operationClass(Line(1, ""), value("compaction"), fail),
      isolation = header.getOrElse("isolation", "Serializable"),
      cells = cells
    )
  }

  private def readHeader(lines: Seq[Line], fail: Failure): Map[String, String] = {
    lines.map { line =>
      line.text.split("\\s+", 2) match {
        case Array(key, value) if Keys(key) => key -> value.trim
        case _ =>
          fail.at(line, s"is no '<key> <value>' with a key of ${Keys.toSeq.sorted.mkString(", ")}")
      }
    }.toMap
  }

  private def readColumns(table: Seq[Line], fail: Failure): Seq[OperationClass] = {
    val line = table.headOption.getOrElse(fail.at(Line(1, ""), "has no matrix; add one"))
    val columns = split(line).drop(1).map(operationClass(line, _, fail))
    if (columns.distinct != columns) fail.at(line, "names a class twice")
    columns
  }

  private def readRow(
      line: Line,
      earlier: OperationClass,
      classes: Seq[OperationClass],
      fail: Failure
  ): Seq[Verdict] = {
    val entries = split(line)
    if (!entries.headOption.contains(earlier.name))
      fail.at(line, s"must be the row of $earlier: rows stand in the order of the columns")
    if (entries.size != classes.size + 1)
      fail.at(line, s"has ${entries.size - 1} cells but the matrix has ${classes.size} columns")
    entries.drop(1).zip(classes).map { case (name, later) =>
      Verdict.byName(name).getOrElse(
        fail.at(
          line,
          s"cell $earlier -> $later: '$name' is no verdict; use one of ${Verdict.all.mkString(", ")}"
        )
      )
    }
  }

  private def operationClass(line: Line, name: String, fail: Failure): OperationClass =
    OperationClass.byName(name).getOrElse(
      fail.at(
        line,
        s"'$name' is no operation class; use one of ${OperationClass.all.mkString(", ")}"
      )
    )

  private def split(line: Line): Seq[String] =
    line.text.stripPrefix("|").stripSuffix("|").split('|').map(_.trim).toSeq

  final private case class Line(number: Int, text: String) {
    def isContent: Boolean = text.nonEmpty && !text.startsWith("#")
  }

  final private class Failure(origin: String) {
    def at(line: Line, what: String): Nothing =
      throw new MalformedPolicy(s"$origin, line ${line.number}: $what.")
  }
}

/** A policy text that cannot be read; the message names the line and what to change. */
final class MalformedPolicy(message: String) extends IllegalArgumentException(message)
