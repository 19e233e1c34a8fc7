package io.interlock.spark.statements

import io.interlock.spark.compaction.CompactionKind
import io.interlock.spark.errors.InterlockException
import io.interlock.spark.statements.StatementTokens.words
import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.parser.{ParserInterface, SqlTokens}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Recognises `ALTER TABLE t [PARTITION (...)] COMPACT MINOR | MAJOR | MERGE SMALLFILES`. */
private[spark] object CompactText {

  /** The statement's plan; None for a text that does not begin like a compaction.
    *
    * @throws InterlockException
    *   INTERLOCK_COMPACT_SYNTAX, if it does not end like one
    */
  def parse(delegate: ParserInterface, sql: String): Option[LogicalPlan] = {
    val tokens = StatementTokens.of(sql)
    for {
      alter <- StatementTokens.begin(tokens, "ALTER", "TABLE")
      verb = afterPartition(tokens, afterName(tokens, alter + 2))
      if words(tokens.slice(verb, verb + 1)).exists(Set("COMPACT", "MERGE"))
    } yield {
      val found = words(tokens.drop(verb))
      val kind = CompactionKind.all.find(_.words == found)
        .getOrElse(throw InterlockException.compactSyntax(found.mkString(" ")))
      AsTruncate.parse(
        delegate,
        asTruncate(sql, tokens(alter), tokens(verb)),
        s"ALTER TABLE ... ${kind.name}",
        InterlockException.compactSyntax(kind.name)
      )(CompactStatement(_, _, kind))
    }
  }

  /** The end of the name that begins at `start`: `a.b.c`, or `IDENTIFIER(...)`. */
  private def afterName(tokens: Vector[Token], start: Int): Int = {
    val part = afterParentheses(tokens, start + 1)
    if (words(tokens.slice(part, part + 1)) == Seq(".")) afterName(tokens, part + 1) else part
  }

  private def afterPartition(tokens: Vector[Token], start: Int): Int =
    if (words(tokens.slice(start, start + 1)) == Seq("PARTITION"))
      afterParentheses(tokens, start + 1)
    else start

  /** The position after the closing parenthesis, if there is an opening one at `start`. */
  private def afterParentheses(tokens: Vector[Token], start: Int): Int =
    if (words(tokens.slice(start, start + 1)) != Seq("(")) start
    else
      Some(StatementTokens.depths(tokens.drop(start)).indexOf(0)).filter(_ >= 0)
        .fold(tokens.size)(start + _ + 1)

  private def asTruncate(sql: String, alter: Token, verb: Token): String =
    SqlTokens.text(sql, 0, alter.getStartIndex) + "TRUNCATE" +
      SqlTokens.text(sql, alter.getStopIndex + 1, verb.getStartIndex)
}
