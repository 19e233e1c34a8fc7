package io.interlock.spark.statements

import io.interlock.spark.statements.StatementTokens.words
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface, SqlTokens}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.interlock.block.InBlock

/** Recognises `BEGIN ATOMIC <statements> END`, and the statements that begin and end the block of a
  * session: `BEGIN {TRANSACTION | WORK}`, `COMMIT [TRANSACTION | WORK]` and `ROLLBACK [TRANSACTION |
  * WORK]`.
  */
private[spark] object BlockText {
  private val nouns = Set("TRANSACTION", "WORK")

  /** The statement's plan; None for a text that is none of these.
    *
    * @throws InterlockException
    *   INTERLOCK_NOT_IN_BLOCK, if the block has a statement that no block takes
    */
  def parse(delegate: ParserInterface, sql: String): Option[LogicalPlan] = {
    val tokens = StatementTokens.of(sql)
    words(tokens.take(2)) match {
      case Seq("BEGIN", "ATOMIC") =>
        val script = SqlTokens.text(sql, 0, tokens(1).getStartIndex) +
          " " * "ATOMIC".length + SqlTokens.text(sql, tokens(1).getStopIndex + 1, sql.length)
        Some(AtomicScript.of(script, parsed(delegate, script)))
      case Seq("BEGIN", noun) if nouns(noun) && tokens.size == 2 => Some(BlockCommand("BEGIN"))
      case (verb @ ("COMMIT" | "ROLLBACK")) +: rest if tokens.size <= 2 && rest.forall(nouns) =>
        Some(BlockCommand(verb))
      case _ => None
    }
  }

  private def parsed(delegate: ParserInterface, script: String): LogicalPlan =
    try delegate.parsePlan(script)
    catch {
      case failed: ParseException =>
        // Spark does not know the statements of Delta and Interlock in a script.
        val tokens = words(SqlTokens.of(script))
        tokens.zip("" +: tokens).collectFirst {
          case (verb, ";" | "BEGIN" | "THEN" | "ELSE" | "DO" | "LOOP") if ofDelta(verb) =>
            throw InBlock.refused(verb)
        }
        throw failed
    }

  private val ofDelta = Set("OPTIMIZE", "VACUUM", "RESTORE", "REORG", "CONVERT", "GENERATE")
}
