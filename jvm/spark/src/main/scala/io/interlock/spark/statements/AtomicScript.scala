package io.interlock.spark.statements

import io.interlock.spark.claims.StreamThread
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.execution.SQLExecution

/** `BEGIN ATOMIC <statements> END`, before it is run.
  *
  * @param script
  *   the statements, as a script of Spark's
  * @param isAlone
  *   whether they are one statement, which needs no block
  */
final case class AtomicScript(script: String, isAlone: Boolean) extends LeafNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
}

private[statements] object AtomicScript {

  /** @throws io.interlock.spark.errors.InterlockException
    *   INTERLOCK_NOT_IN_BLOCK, if one of the statements is none that a block takes
    */
  def of(script: String, parsed: LogicalPlan): AtomicScript = {
    statements(parsed).foreach(StatementsInBlock.refuse)
    val isAlone = parsed.productIterator.next() match {
      case Seq(only: SingleStatement) =>
        only.parsedPlan.collect { case insert: InsertIntoStatement => insert }.size <= 1
      case _ => false
    }
    AtomicScript(script, isAlone)
  }

  private def statements(part: Any): Seq[LogicalPlan] = part match {
    case single: SingleStatement => Seq(single.parsedPlan)
    case compound: CompoundPlanStatement => compound.productIterator.flatMap(statements).toSeq
    case several: Iterable[_] => several.flatMap(statements).toSeq
    case _ => Nil
  }
}

/** Runs blocks where Spark runs its scripts: when they are analysed. Their result is that of the
  * script. A block that loses is run again as a whole, as often as each of the tables that it changes
  * permits, if it does the same on the same data; not in a streaming query.
  */
final class RunAtomicScript(session: SparkSession) extends Rule[LogicalPlan] {
  private lazy val own = castToImpl(session)

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case AtomicScript(script, true) => run(script)
    case AtomicScript(script, false) =>
      var last = Option.empty[Block]
      Rerun(Runs(last.fold(1)(most), () => true)) { _ =>
        Block.begin(own, isOfScript = true): Unit
        last = Block.of(own)
        try {
          val result = run(script)
          Block.commit(own, isOfScript = true): Unit
          result
        } finally Block.rollBack(own, isOfScript = true)
      }
    case other => other
  }

  private def most(lost: Block) =
    if (!lost.isRepeatable || StreamThread.isCurrent(session.sparkContext)) 1
    else lost.changed.map(Runs.most(session, _)).minOption.getOrElse(1)

  private def run(script: String): LogicalPlan = {
    val query = own.sql(script).queryExecution
    val rows = SQLExecution.withNewExecutionId(query)(query.executedPlan.executeCollect())
    CommandResult(query.analyzed.output, query.analyzed, query.executedPlan, rows.toSeq)
  }
}
