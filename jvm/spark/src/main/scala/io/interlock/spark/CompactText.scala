package io.interlock.spark

import java.util.Locale

import io.interlock.spark.errors.InterlockException
import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.parser.SqlTokens

/** The text of a compaction.
  *
  * @param truncate
  *   a TRUNCATE of the same table and partition, for Spark to parse; behind EXPLAIN where the
  *   compaction is
  */
final private[spark] case class CompactText(truncate: String, kind: CompactionKind)

/** Recognises `ALTER TABLE t [PARTITION (...)] COMPACT MINOR | MAJOR | MERGE SMALLFILES`. */
private[spark] object CompactText {

  /** @throws InterlockException
    *   INTERLOCK_COMPACT_SYNTAX, where the statement begins as a compaction and does not end as one
    */
  def of(sql: String): Option[CompactText] = {
    val tokens = SqlTokens.of(sql).reverse.dropWhile(_.getText == ";").reverse
    for {
      alter <- Seq(0, 1, 2).find(i => words(tokens.slice(i, i + 2)) == Seq("ALTER", "TABLE"))
      if alter == 0 || words(tokens.take(1)) == Seq("EXPLAIN")
      verb = afterPartition(tokens, afterName(tokens, alter + 2))
      if words(tokens.slice(verb, verb + 1)).exists(Set("COMPACT", "MERGE"))
    } yield {
      val found = words(tokens.drop(verb))
      val kind = CompactionKind.all.find(_.words == found)
        .getOrElse(throw InterlockException.compactSyntax(found.mkString(" ")))
      CompactText(asTruncate(sql, tokens(alter), tokens(verb)), kind)
    }
  }

  /** Where a name ends that begins at `start`: `a.b.c`, or `IDENTIFIER(...)`. */
  private def afterName(tokens: Vector[Token], start: Int): Int = {
    val part = afterParentheses(tokens, start + 1)
    if (words(tokens.slice(part, part + 1)) == Seq(".")) afterName(tokens, part + 1) else part
  }

  private def afterPartition(tokens: Vector[Token], start: Int): Int =
    if (words(tokens.slice(start, start + 1)) == Seq("PARTITION"))
      afterParentheses(tokens, start + 1)
    else start

  /** Behind the closing parenthesis, where an opening one stands at `start`. */
  private def afterParentheses(tokens: Vector[Token], start: Int): Int = {
    val depths = tokens.drop(start).scanLeft(0) { (depth, token) =>
      token.getText match {
        case "(" => depth + 1
        case ")" => depth - 1
        case _ => depth
      }
    }.drop(1)
    if (!depths.headOption.contains(1)) start
    else Some(depths.indexOf(0)).filter(_ >= 0).fold(tokens.size)(start + _ + 1)
  }

  private def asTruncate(sql: String, alter: Token, verb: Token): String = {
    // The lexer counts code points.
    def offset(points: Int) = sql.offsetByCodePoints(0, points)
    sql.substring(0, offset(alter.getStartIndex)) + "TRUNCATE" +
      sql.substring(offset(alter.getStopIndex + 1), offset(verb.getStartIndex))
  }

  private def words(tokens: Seq[Token]): Seq[String] =
    tokens.map(_.getText.toUpperCase(Locale.ROOT))
}
