package io.interlock.spark.statements

import java.util.Locale

import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.parser.SqlTokens

/** The tokens of a statement that Spark's grammar has not. */
private[spark] object StatementTokens {

  /** The tokens of a text, without the semicolons at its end. */
  def of(sql: String): Vector[Token] = SqlTokens.of(sql).reverse.dropWhile(_.getText == ";").reverse

  /** Where a statement with these first words begins: it may be explained. */
  def begin(tokens: Vector[Token], first: String*): Option[Int] =
    Seq(0, 1, 2).find(i => words(tokens.slice(i, i + first.size)) == first)
      .filter(at => at == 0 || words(tokens.take(1)) == Seq("EXPLAIN"))

  /** In capitals, as keywords are compared. */
  def words(tokens: Seq[Token]): Seq[String] = tokens.map(_.getText.toUpperCase(Locale.ROOT))

  /** How many parentheses and brackets are open behind each token. */
  def depths(tokens: Seq[Token]): Seq[Int] =
    tokens.scanLeft(0) { (depth, token) =>
      token.getText match {
        case "(" | "[" => depth + 1
        case ")" | "]" => depth - 1
        case _ => depth
      }
    }.drop(1)
}
