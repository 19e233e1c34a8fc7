package io.interlock.rules

/** Reads a policy from a text that has the layout of the matrix in its document.
  *
  * {{{
  * policy     maxcompute_delta
  * source     where the matrix stands
  * cells      D
  * compaction COMPACT_MINOR
  * isolation  Serializable
  * | earlier \ later | OVERWRITE    | APPEND | COMPACT_MINOR |
  * | OVERWRITE       | REPLACE_LIVE | FAIL   | FAIL          |
  * | APPEND          | REPLACE_LIVE | FAIL   | AS_IS         |
  * | COMPACT_MINOR   | REPLACE_LIVE | AS_IS  | FAIL          |
  * }}}
  *
  * Each row is the job that committed first, each column the job that committed second. Lines that
  * begin with `#` are comments. `cells` is the prefix of the cells' numbers, which count row by
  * row. `cells` and `isolation` may be missing; `policy` may be missing if the name is known. A
  * matrix that would leave a table wrong is refused: see [[VerdictPlaces]].
  */
object PolicyText {
  private val Keys = Seq("policy", "source", "cells", "compaction", "isolation")
  private val Isolations = Seq("Serializable", "WriteSerializable")
  private val Needed = Seq(OperationClass.Overwrite, OperationClass.Append)
  private val Compactions = Seq(OperationClass.CompactMinor, OperationClass.MergeSmallFiles)

  /** @param origin
    *   the place of the text, for errors
    * @param name
    *   the name that the policy must have; if none, the name in the text
    * @throws MalformedPolicy
    *   with the line, and the cell if there is one
    */
  def parse(origin: String, text: String, name: Option[String] = None): Policy =
    new PolicyText(origin, text).policy(name)

  final private case class Line(number: Int, text: String) {
    def isContent: Boolean = text.nonEmpty && !text.startsWith("#")
  }

  /** A value of the text's head, and its line. */
  final private case class Entry(line: Line, value: String)
}

final private class PolicyText(origin: String, text: String) {
  import PolicyText._

  private val first = Line(1, "")
  private val (table, head) = text.linesIterator.map(_.trim).zipWithIndex
    .map { case (content, i) => Line(i + 1, content) }
    .filter(_.isContent).toSeq
    .partition(_.text.startsWith("|"))

  def policy(expected: Option[String]): Policy = {
    val entries = readHead()
    def entry(key: String) =
      entries.getOrElse(key, fail(first, s"has no line '$key'; add it"))
    val name = expected.getOrElse(entry("policy").value)
    // A text that is not a policy may hold secrets: it is refused before an error could quote it.
    val source = entry("source").value
    val compactionEntry = entry("compaction")
    entries.get("policy").filter(_.value != name).foreach { other =>
      fail(other.line, s"the policy calls itself '${other.value}'; call it '$name'")
    }
    val classes = readColumns()
    val compaction = readCompaction(compactionEntry, classes)
    val isolation = entries.get("isolation").fold(Isolations.head)(readIsolation)
    Policy(
      name = name,
      source = source,
      classes = classes,
      compaction = compaction,
      isolation = isolation,
      cells = readCells(classes, compaction, entries.get("cells").map(_.value))
    )
  }

  private def readHead(): Map[String, Entry] =
    head.foldLeft(Map.empty[String, Entry]) { (known, line) =>
      line.text.split("\\s+", 2) match {
        case Array(key, _) if known.contains(key) =>
          fail(line, s"says '$key' again, as line ${known(key).line.number} does; keep one of them")
        case Array(key, value) if Keys.contains(key) => known + (key -> Entry(line, value.trim))
        case _ => fail(line, s"is no '<key> <value>' with a key of ${Keys.sorted.mkString(", ")}")
      }
    }

  private def readColumns(): Seq[OperationClass] = {
    val line = table.headOption.getOrElse(fail(first, "has no matrix; add one"))
    val columns = split(line).drop(1).map(operationClass(line, _))
    if (columns.distinct != columns) fail(line, "names a class twice")
    if (columns.contains(OperationClass.Metadata))
      fail(line, "names METADATA, which Delta's own checks judge; leave it out")
    Needed.filterNot(columns.contains).foreach { missing =>
      fail(line, s"lacks $missing; add its row and column")
    }
    columns
  }

  private def readCompaction(entry: Entry, classes: Seq[OperationClass]): OperationClass = {
    val compaction = operationClass(entry.line, entry.value)
    if (!Compactions.contains(compaction))
      fail(entry.line, s"OPTIMIZE cannot be $compaction; use ${Compactions.mkString(" or ")}")
    if (!classes.contains(compaction))
      fail(entry.line, s"the matrix has no $compaction; add its row and column")
    compaction
  }

  private def readIsolation(entry: Entry): String =
    if (Isolations.contains(entry.value)) entry.value
    else
      fail(
        entry.line,
        s"'${entry.value}' is no isolation level; use ${Isolations.mkString(" or ")}"
      )

  private def readCells(
      classes: Seq[OperationClass],
      compaction: OperationClass,
      prefix: Option[String]
  ): Seq[Cell] = {
    val rows = table.drop(1)
    if (rows.size != classes.size)
      fail(table.head, s"has ${classes.size} columns but ${rows.size} rows; give one row a class")
    rows.zip(classes).zipWithIndex.flatMap { case ((line, earlier), row) =>
      readRow(line, earlier, classes, compaction).zipWithIndex.map { case (verdict, column) =>
        val id = prefix.fold("")(_ + (row * classes.size + column + 1))
        Cell(id, earlier, classes(column), verdict)
      }
    }
  }

  private def readRow(
      line: Line,
      earlier: OperationClass,
      classes: Seq[OperationClass],
      compaction: OperationClass
  ): Seq[Verdict] = {
    val entries = split(line)
    if (!entries.headOption.contains(earlier.name))
      fail(line, s"must be the row of $earlier: rows stand in the order of the columns")
    if (entries.size != classes.size + 1)
      fail(line, s"has ${entries.size - 1} cells but the matrix has ${classes.size} columns")
    entries.drop(1).zip(classes).map { case (name, later) =>
      def cell = s"cell $earlier -> $later"
      val verdict = Verdict.byName(name).getOrElse(
        fail(line, s"$cell: '$name' is no verdict; use one of ${Verdict.all.mkString(", ")}")
      )
      if (!VerdictPlaces.allow(verdict, earlier, later, compaction))
        fail(line, s"$cell: $verdict can only stand ${VerdictPlaces.of(verdict)}; FAIL always can")
      verdict
    }
  }

  private def operationClass(line: Line, name: String): OperationClass =
    OperationClass.byName(name).getOrElse(
      fail(line, s"'$name' is no operation class; use one of ${OperationClass.all.mkString(", ")}")
    )

  private def split(line: Line): Seq[String] =
    line.text.stripPrefix("|").stripSuffix("|").split('|').map(_.trim).toSeq

  private def fail(line: Line, what: String): Nothing =
    throw new MalformedPolicy(s"$origin, line ${line.number}: $what.")
}

/** A policy text that cannot be read; the message names the line and what to change. */
final class MalformedPolicy(message: String) extends IllegalArgumentException(message)
