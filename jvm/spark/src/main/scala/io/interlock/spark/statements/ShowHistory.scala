package io.interlock.spark.statements

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.AnyDeltaTable
import io.interlock.spark.statements.StatementTokens.words
import org.antlr.v4.runtime.Token
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTypes.TablePartitionSpec
import org.apache.spark.sql.catalyst.parser.{ParserInterface, SqlTokens}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

/** `SHOW HISTORY FOR TABLE t [PARTITION (column = value, ...)] [LIMIT n]`, with its table not
  * resolved yet.
  */
final case class ShowHistoryStatement(
    child: LogicalPlan,
    partition: TablePartitionSpec,
    limit: Option[Int]
) extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): ShowHistoryStatement =
    copy(child = newChild)
}

private[spark] object ShowHistory {
  val Name = "SHOW HISTORY"

  /** The statement's plan; None for a text that does not begin like this statement.
    *
    * @throws InterlockException
    *   INTERLOCK_SHOW_HISTORY_SYNTAX, if the rest of the text is wrong
    */
  def parse(delegate: ParserInterface, sql: String): Option[LogicalPlan] = {
    val tokens = StatementTokens.of(sql)
    StatementTokens.begin(tokens, "SHOW", "HISTORY").map { show =>
      val rest = tokens.drop(show + 2)
      def refused =
        InterlockException(
          "INTERLOCK_SHOW_HISTORY_SYNTAX",
          "found" -> tokens.drop(show).map(_.getText).mkString(" ")
        )
      if (words(rest.take(2)) != Seq("FOR", "TABLE")) throw refused
      val (target, limit) = limited(rest.drop(2))
      val end = target.lastOption.getOrElse(rest(1)).getStopIndex + 1
      val truncate = SqlTokens.text(sql, 0, tokens(show).getStartIndex) + "TRUNCATE TABLE" +
        SqlTokens.text(sql, rest(1).getStopIndex + 1, end)
      AsTruncate.parse(delegate, truncate, Name, refused)(ShowHistoryStatement(_, _, limit))
    }
  }

  private val Count = raw"(\d{1,10})L?".r

  /** The tokens before LIMIT, and the limit. */
  private def limited(tokens: Vector[Token]): (Vector[Token], Option[Int]) =
    words(tokens.takeRight(2)) match {
      case Seq("LIMIT", Count(number)) if tokens.size > 2 && number.toLong <= Int.MaxValue =>
        (tokens.dropRight(2), Some(number.toInt))
      case _ => (tokens, None)
    }
}

/** Resolves the statement's table, which may be any Delta table. */
object ResolveShowHistory extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case ShowHistoryStatement(ResolvedTable(_, _, AnyDeltaTable(table), _), partition, limit) =>
      ShowHistoryCommand(table, partition.map { case (k, v) => k -> Option(v) }, limit)
    case ShowHistoryStatement(resolved: ResolvedTable, _, _) =>
      throw InterlockException.notADeltaTable(ShowHistory.Name, resolved.table.name())
    case other => other
  }
}
