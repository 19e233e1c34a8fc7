package org.apache.spark.sql.catalyst.parser

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.{CharStreams, CommonTokenStream, Token}

/** The tokens of a SQL text by Spark's own lexer, which is private to this package. */
object SqlTokens {

  /** Without white space, comments and the end of the text. */
  def of(sql: String): Vector[Token] = {
    val lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(sql)))
    lexer.removeErrorListeners()
    val stream = new CommonTokenStream(lexer)
    stream.fill()
    stream.getTokens.asScala
      .filter(t => t.getChannel == Token.DEFAULT_CHANNEL && t.getType != Token.EOF)
      .toVector
  }

  /** The text between two positions of tokens, which count code points. */
  def text(sql: String, from: Int, until: Int): String =
    sql.substring(sql.offsetByCodePoints(0, from), sql.offsetByCodePoints(0, until))
}
