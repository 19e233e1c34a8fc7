package io.interlock.spark.statements

import scala.util.Try

import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.parser._

/** Replaces the parameter markers in the text of a statement, Spark's or Interlock's, by the
  * values.
  */
private[spark] object BoundParameters {

  /** Spark finds the markers by its grammar, and so not in statements that it does not know: there
    * every `?` and every `:name` is a marker. If the markers and parameters do not fit together,
    * the text is returned unchanged, so that the parser refuses it.
    */
  def in(sql: String, parameters: ParameterContext): String =
    try ParameterHandler.substituteParameters(sql, parameters)._1
    catch {
      case _: ParseException =>
        Try(replaced(sql, markers(SqlTokens.of(sql)), parameters)).getOrElse(sql)
    }

  private def markers(tokens: Vector[Token]): Vector[Seq[Token]] =
    tokens.indices.flatMap { index =>
      tokens(index).getText match {
        case "?" => Some(tokens.slice(index, index + 1))
        case ":" => Some(tokens.slice(index, index + 2))
        case _ => None
      }
    }.toVector

  private def replaced(
      sql: String,
      markers: Vector[Seq[Token]],
      parameters: ParameterContext
  ): String = {
    val listed = markers.map(_.map(_.getText).mkString).mkString("VALUES (", ", ", ")")
    val values = elements(ParameterHandler.substituteParameters(listed, parameters)._1)
    val ends = markers.map(_.last.getStopIndex + 1)
    val between = (0 +: ends).zip(markers.map(_.head.getStartIndex) :+ sql.codePoints.count.toInt)
      .map { case (from, until) => SqlTokens.text(sql, from, until) }
    between.zipAll(values, "", "").map { case (text, value) => text + value }.mkString
  }

  /** The texts in `VALUES (a, b, ...)`. */
  private def elements(list: String): Seq[String] = {
    val tokens = SqlTokens.of(list).drop(1)
    val ends = tokens.zip(StatementTokens.depths(tokens)).collect {
      case (token, 1) if token.getText == "," => token.getStartIndex
      case (token, 0) => token.getStartIndex
    }
    (tokens.head.getStartIndex +: ends).zip(ends).map { case (from, until) =>
      SqlTokens.text(list, from + 1, until).trim
    }
  }
}
