package io.interlock.spark.text

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier

/** What stands in the text of a statement that is ours. Spark would replace `${...}` anywhere. */
object SqlText {
  def literal(text: String): String = Literal(text).sql.replace("$", "\\u0024")

  def table(parts: Seq[String]): String =
    s"IDENTIFIER(${literal(parts.map(quoteIdentifier).mkString("."))})"
}
