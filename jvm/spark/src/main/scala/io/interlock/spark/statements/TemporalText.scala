package io.interlock.spark.statements

import scala.util.Try

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.ranges.TableFunctions
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.CTESubstitution
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface, SqlTokens}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A SQL text with `t VERSION | TIMESTAMP BETWEEN a AND b`, or `t VERSION AS OF <expression>`.
  *
  * Used only for texts that the parser has refused.
  */
final private[spark] class TemporalText(sql: String, parser: ParserInterface) {
  import TemporalText._

  private val tokens = SqlTokens.of(sql)
  private val words = StatementTokens.words(tokens)

  /** The plan of the text in which each such clause, with its relation, is replaced by a call of
    * one of the [[TableFunctions]]; a view keeps its text with the call. None if the text has no
    * such clause. None, too, if the parser would refuse the text even with a clause that it knows
    * in the same places: then a clause is not after a relation, or something else is wrong.
    *
    * @throws InterlockException
    *   INTERLOCK_RANGE_NEEDS_TABLE, where a relation is a common table expression
    */
  def plan: Option[LogicalPlan] =
    for {
      found <- Some(clauses) if found.nonEmpty
      known <- accepted(found.map(clause => clause.copy(from = clause.keyword, call = Known)))
      _ = refuseCommonTables(known)
      plan <- accepted(found)
    } yield plan

  private def accepted(clauses: Seq[Clause]): Option[LogicalPlan] =
    try Some(parser.parsePlan(replaced(clauses)))
    catch { case _: ParseException => None }

  private lazy val clauses: Seq[Clause] =
    tokens.indices.flatMap(i => between(i).orElse(asOf(i))).foldLeft(Vector.empty[Clause]) {
      (found, next) => if (found.forall(_.until <= next.from)) found :+ next else found
    }

  private def replaced(clauses: Seq[Clause]): String =
    clauses.foldRight(sql) { case (clause, text) =>
      SqlTokens.text(text, 0, clause.from) + clause.call +
        text.substring(text.offsetByCodePoints(0, clause.until))
    }

  /** Refuses common table expressions; Spark knows which relations are, and does not let them
    * travel in time.
    */
  private def refuseCommonTables(plan: LogicalPlan): Unit =
    try { CTESubstitution(plan); () }
    catch {
      case refused: AnalysisException if refused.getCondition == TimeTravelUnsupported =>
        throw InterlockException.rangeNeedsTable(
          refused.getMessageParameters.getOrDefault("relationId", ""),
          "a common table expression"
        )
    }

  /** @param at
    *   the position at which BETWEEN may be
    */
  private def between(at: Int): Option[Clause] =
    for {
      function <- Between.get(word(at - 1)) if word(at) == "BETWEEN"
      keyword = withoutFor(at - 1)
      name <- nameBefore(keyword)
      and <- ends(at + 1).find(i => word(i) == "AND" && isExpression(at + 1, i))
      end <- ends(and + 1).findLast(isExpression(and + 1, _))
    } yield clause(name, keyword, end, function, text(at + 1, and), text(and + 1, end))

  /** @param at
    *   the position at which OF may be
    */
  private def asOf(at: Int): Option[Clause] =
    for {
      as <- Some(at - 1) if word(at) == "OF" && word(as) == "AS" && AsOf(word(as - 1))
      keyword = withoutFor(as - 1)
      name <- nameBefore(keyword)
      end <- ends(at + 1).findLast(isExpression(at + 1, _))
      if !text(at + 1, end).matches(KnownVersion)
    } yield clause(name, keyword, end, TableFunctions.AtVersion, text(at + 1, end))

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

  /** The name before a token, `a.b.c` or `IDENTIFIER(...)`, if a relation can be there. */
  private def nameBefore(end: Int): Option[Name] = {
    val name =
      if (word(end - 1) == ")")
        (end - 2 to 1 by -1)
          .find(i => word(i) == "(" && isBalanced(i + 1, end - 1))
          .filter(i => word(i - 1) == "IDENTIFIER")
          .map(open => Name(open - 1, text(open + 1, end - 1)))
      else {
        val from = Iterator.iterate(end - 1)(_ - 2).dropWhile(i => word(i - 1) == ".").next()
        Some(from).filter(i => i > 0 && isName(i, end)).map(Name(_, quoted(text(from, end))))
      }
    name.filter(n => BeforeRelation(word(n.from - 1)))
  }

  private def isName(start: Int, end: Int): Boolean =
    !NoName(word(start)) && Try(parser.parseMultipartIdentifier(text(start, end))).isSuccess

  /** The positions at which an expression that begins at `start` may end: outside of parentheses,
    * and not after a token that no expression has.
    */
  private def ends(start: Int): Seq[Int] = {
    val depths = 0 +: StatementTokens.depths(tokens.drop(start))
    val inside = depths.zipWithIndex.drop(1).takeWhile { case (depth, i) =>
      depth >= 0 && (depths(i - 1) > 0 || !Behind(word(start + i - 1)))
    }
    inside.collect { case (0, i) => start + i }
  }

  private def isBalanced(start: Int, end: Int): Boolean =
    StatementTokens.depths(tokens.slice(start, end)).lastOption.forall(_ == 0)

  private def isExpression(start: Int, end: Int): Boolean =
    start < end && Try(parser.parseExpression(text(start, end))).fold(
      _ => false,
      !_.isInstanceOf[Alias]
    )

  private def word(index: Int): String = words.lift(index).getOrElse("")

  private def text(start: Int, end: Int): String =
    SqlTokens.text(sql, tokens(start).getStartIndex, tokens(end - 1).getStopIndex + 1)
}

private object TemporalText {

  /** One clause with its relation; positions are in code points. */
  final case class Clause(from: Int, keyword: Int, until: Int, call: String)

  /** @param argument
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

  /** A clause that every parser knows. */
  private val Known = "VERSION AS OF 0"

  /** A literal version, which every parser accepts there. */
  private val KnownVersion = "(?s)\\d+|'[^']*'|\"[^\"]*\""

  private val BeforeRelation = Set("FROM", "JOIN", ",", "(")

  /** Words that may come before a column named `version`, and are not a relation's name. */
  private val NoName = Set("SELECT", "DISTINCT", "ALL", "NOT", "CASE", "WHERE", "FROM")

  /** Tokens that no expression has outside of parentheses. */
  private val Behind =
    Set(",", ";", "AS", "WHERE", "JOIN", "ON", "USING", "GROUP", "ORDER", "LIMIT", "UNION")

  private val TimeTravelUnsupported = "UNSUPPORTED_FEATURE.TIME_TRAVEL"

  private def quoted(name: String): String =
    "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
}
