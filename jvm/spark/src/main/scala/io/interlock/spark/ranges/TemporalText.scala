package io.interlock.spark.ranges

import java.util.Locale

import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

import io.interlock.spark.errors.InterlockException
import org.antlr.v4.runtime.Token
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.CTESubstitution
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface, SqlTokens}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A SQL text with `t VERSION | TIMESTAMP BETWEEN a AND b`, or `t VERSION AS OF <expression>`.
  *
  * Each is replaced by a call of one of the [[TableFunctions]], so that the texts of views keep it.
  * Where one stands is told by the error of a parser that does not know it; nothing else changes.
  *
  * @param parser
  *   Delta's
  */
final private[spark] class TemporalText(sql: String, parser: ParserInterface) {
  import TemporalText._

  private val tokens = SqlTokens.of(sql)

  /** The plan, or none where the parser refused the text for another reason.
    *
    * @throws InterlockException
    *   INTERLOCK_RANGE_NEEDS_TABLE, where the relation is a common table expression
    */
  def plan(refused: ParseException): Option[LogicalPlan] =
    clauses(sql, refused, Nil).flatMap { found =>
      val text = found.foldLeft(sql) { case (left, clause) =>
        left.substring(0, offset(clause.from)) + clause.call + left.substring(offset(clause.until))
      }
      Try(parser.parsePlan(text)) match {
        case Failure(_: ParseException) => None
        case other => Some(other.get)
      }
    }

  /** All clauses, the last one first.
    *
    * @param text
    *   the SQL text, with a clause that the parser knows, of the same length, instead of those in
    *   `found`; so it tells also whether a relation stands there
    */
  @tailrec
  private def clauses(
      text: String,
      error: ParseException,
      found: List[Clause]
  ): Option[List[Clause]] =
    clauseAt(position(text, error)).filter(c => found.forall(_.until <= c.from)) match {
      case None => None
      case Some(clause) =>
        val known = withKnown(text, clause)
        Try(parser.parsePlan(known)) match {
          case Success(plan) =>
            refuseCommonTables(plan)
            Some(clause :: found)
          case Failure(next: ParseException) => clauses(known, next, clause :: found)
          case Failure(other) => throw other
        }
    }

  private def withKnown(text: String, clause: Clause): String = {
    val (begin, end) = (offset(clause.keyword), offset(clause.until))
    val rest = text.substring(begin, end).drop(Known.length)
    text.substring(0, begin) + Known + rest.map(c => if (c == '\n') c else ' ') + text.substring(
      end
    )
  }

  /** Spark tells which relations are common tables, and refuses them to travel in time. */
  private def refuseCommonTables(plan: LogicalPlan): Unit =
    try { CTESubstitution(plan); () }
    catch {
      case refused: AnalysisException if refused.getCondition == TimeTravelUnsupported =>
        throw InterlockException.rangeNeedsTable(
          refused.getMessageParameters.getOrDefault("relationId", ""),
          "a common table expression"
        )
    }

  /** The clause that a parser does not get past.
    *
    * @param start
    *   where the token begins that it refuses, in code points
    */
  private def clauseAt(start: Int): Option[Clause] =
    Some(tokens.indexWhere(_.getStartIndex == start)).filter(_ > 1).flatMap { at =>
      if (word(at) == "BETWEEN") between(at)
      else Seq(at - 1, at - 2).filter(_ > 2).find(i => word(i) == "OF").flatMap(asOf(_, at))
    }

  private def between(at: Int): Option[Clause] =
    for {
      function <- Between.get(word(at - 1))
      keyword = withoutFor(at - 1)
      name <- nameBefore(keyword)
      and <- ends(at + 1).find(i => word(i) == "AND" && isExpression(at + 1, i))
      end <- ends(and + 1).findLast(isExpression(and + 1, _))
    } yield clause(name, keyword, end, function, text(at + 1, and), text(and + 1, end))

  /** @param of
    *   the token OF
    * @param refused
    *   the token that the parser refuses
    */
  private def asOf(of: Int, refused: Int): Option[Clause] =
    for {
      as <- Some(of - 1) if word(as) == "AS" && AsOf(word(as - 1))
      keyword = withoutFor(as - 1)
      name <- nameBefore(keyword)
      end <- ends(of + 1).findLast(isExpression(of + 1, _)) if end > refused
    } yield clause(name, keyword, end, TableFunctions.AtVersion, text(of + 1, end))

  private def clause(
      name: Name,
      keyword: Int,
      end: Int,
      function: String,
      arguments: String*
  ): Clause =
    Clause(
      tokens(name.from).getStartIndex,
      tokens(keyword).getStartIndex,
      tokens(end - 1).getStopIndex + 1,
      s"($function(${(name.argument +: arguments).mkString(", ")}))"
    )

  private def withoutFor(keyword: Int): Int =
    if (word(keyword - 1) == "FOR") keyword - 1 else keyword

  /** The name that ends before a token: `a.b.c`, or `IDENTIFIER(...)`. */
  private def nameBefore(end: Int): Option[Name] =
    if (word(end - 1) == ")")
      (end - 2 to 1 by -1)
        .find(i => word(i) == "(" && isBalanced(i + 1, end - 1))
        .filter(i => word(i - 1) == "IDENTIFIER")
        .map(open => Name(open - 1, text(open + 1, end - 1)))
    else {
      val from = Iterator.iterate(end - 1)(_ - 2).dropWhile(i => word(i - 1) == ".").next()
      val parts = text(from, end)
      Option.when(from >= 0 && Try(parser.parseMultipartIdentifier(parts)).isSuccess)(
        Name(from, quoted(parts))
      )
    }

  /** Where an expression that begins at a token may end: outside its parentheses, and not behind
    * what no expression has.
    */
  private def ends(start: Int): Seq[Int] = {
    val depths = tokens.drop(start).scanLeft(0)((depth, token) => depth + step(token))
    val inside = depths.zipWithIndex.drop(1).takeWhile { case (depth, i) =>
      depth >= 0 && (depths(i - 1) > 0 || !Behind(word(start + i - 1)))
    }
    inside.collect { case (0, i) => start + i }
  }

  private def isBalanced(start: Int, end: Int): Boolean =
    tokens.slice(start, end).map(step).sum == 0

  private def step(token: Token): Int = token.getText match {
    case "(" | "[" => 1
    case ")" | "]" => -1
    case _ => 0
  }

  private def isExpression(start: Int, end: Int): Boolean =
    start < end && Try(parser.parseExpression(text(start, end))).fold(
      _ => false,
      !_.isInstanceOf[Alias]
    )

  private def word(index: Int): String =
    tokens.lift(index).fold("")(_.getText.toUpperCase(Locale.ROOT))

  private def text(start: Int, end: Int): String =
    sql.substring(offset(tokens(start).getStartIndex), offset(tokens(end - 1).getStopIndex + 1))

  // The lexer counts code points.
  private def offset(points: Int): Int = sql.offsetByCodePoints(0, points)
}

private object TemporalText {

  /** One clause with its relation; places are in code points.
    *
    * @param from
    *   where the relation begins
    * @param keyword
    *   where the clause begins
    * @param until
    *   behind the clause
    * @param call
    *   what stands for it
    */
  final case class Clause(from: Int, keyword: Int, until: Int, call: String)

  /** @param from
    *   its first token
    * @param argument
    *   the name as an argument of a function
    */
  final case class Name(from: Int, argument: String)

  private val Between = Map(
    "VERSION" -> TableFunctions.BetweenVersions,
    "SYSTEM_VERSION" -> TableFunctions.BetweenVersions,
    "TIMESTAMP" -> TableFunctions.BetweenTimestamps,
    "SYSTEM_TIME" -> TableFunctions.BetweenTimestamps
  )
  private val AsOf = Set("VERSION", "SYSTEM_VERSION")

  /** A clause that every parser knows, no longer than any of ours. */
  private val Known = "VERSION AS OF 0"

  private val Behind =
    Set(",", ";", "AS", "WHERE", "JOIN", "ON", "USING", "GROUP", "ORDER", "LIMIT", "UNION")

  private val TimeTravelUnsupported = "UNSUPPORTED_FEATURE.TIME_TRAVEL"

  /** The place of a parser's error, in code points. */
  private def position(text: String, error: ParseException): Int = {
    val lines = text.split("\n", -1).take(error.start.line.getOrElse(1) - 1)
    lines.map(line => line.codePointCount(0, line.length) + 1).sum +
      error.start.startPosition.getOrElse(0)
  }

  private def quoted(name: String): String =
    "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
}
