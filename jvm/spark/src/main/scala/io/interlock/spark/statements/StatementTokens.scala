package io.interlock.spark.statements

import java.util.Locale

import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.parser.SqlTokens

/** Functions on the tokens of statements that are not in Spark's grammar. */
private[spark] object StatementTokens {

  /** The tokens of a text, without the semicolons at its end. */
  def of(sql: String): Vector[Token] = SqlTokens.of(sql).reverse.dropWhile(_.getText == ";").reverse

  /** The position at which a statement with these first words begins, possibly after EXPLAIN. */
  def begin(tokens: Vector[Token], first: String*): Option[Int] =
    Seq(0, 1, 2).find(i => words(tokens.slice(i, i + first.size)) == first)
      .filter(at => at == 0 || words(tokens.take(1)) == Seq("EXPLAIN"))

  /** The tokens in capitals, for comparison with keywords. */
  def words(tokens: Seq[Token]): Seq[String] = tokens.map(_.getText.toUpperCase(Locale.ROOT))

  /** The number of parentheses and brackets that are open after each token. */
  def depths(tokens: Seq[Token]): Seq[Int] =
    tokens.scanLeft(0) { (depth, token) =>
      token.getText match {
        case "(" | "[" => depth + 1
        case ")" | "]" => depth - 1
        case _ => depth
      }
    }.drop(1)
}
