package io.interlock.spark.text

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.quoteIdentifier

/** Values written into the text of a statement that Interlock runs. Spark would replace `${...}` in
  * it.
  */
object SqlText {
  def literal(text: String): String = Literal(text).sql.replace("$", "\\u0024")

  def table(parts: Seq[String]): String =
    s"IDENTIFIER(${literal(parts.map(quoteIdentifier).mkString("."))})"
}
