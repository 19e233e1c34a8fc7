package io.interlock.spark.statements

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.interlock.block.Block
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{LongType, StringType}
import org.apache.spark.sql.{Row, SparkSession}

/** BEGIN TRANSACTION, whose row is the block's id; COMMIT, whose rows are the tables that the block
  * has changed and their versions; ROLLBACK.
  *
  * @param verb
  *   the statement's first word
  */
final case class BlockCommand(verb: String) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = verb match {
    case "BEGIN" => Seq(AttributeReference("block", StringType)())
    case "COMMIT" =>
      Seq(AttributeReference("table", StringType)(), AttributeReference("version", LongType)())
    case _ => Nil
  }

  override def run(session: SparkSession): Seq[Row] = {
    val own = castToImpl(session)
    verb match {
      case "BEGIN" => Seq(Row(Block.begin(own, isOfScript = false)))
      case "COMMIT" =>
        Block.commit(own, isOfScript = false).map { case (table, version) => Row(table, version) }
      case _ =>
        Block.rollBack(own, isOfScript = false)
        Nil
    }
  }
}
