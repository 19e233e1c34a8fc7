package org.apache.spark.sql.delta.interlock.block

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.execution.datasources._

/** Lets the queries of a session with an open block read tables as the block sees them.
  *
  * A rule of the analyzer, because Spark then puts cached rows in place of what it finds in its cache,
  * which all sessions share; and one of the optimizer, for plans that were analysed before the block
  * began. In the transaction of a statement on the table Delta takes the snapshot of the transaction.
  */
final class ReadsInBlock(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = Block.of(session).fold(plan) { block =>
    Block.inBlock(session) {
      AnalysisHelper.allowInvokingTransformsInAnalyzer(redirected(plan, block))
    }
  }

  private def redirected(plan: LogicalPlan, block: Block): LogicalPlan = {
    def inQuery(query: LogicalPlan) = withFiles(query, block)
    plan match {
      case merge: MergeIntoCommand if merge.getClass == classOf[MergeIntoCommand] =>
        inSubqueries(merge.copy(source = inQuery(merge.source)), block)
      case write: V2WriteCommand => write.withNewQuery(inQuery(write.query))
      case save: SaveIntoDataSourceCommand => save.copy(query = inQuery(save.query))
      case command: Command => inSubqueries(command, block)
      case query => inQuery(query)
    }
  }

  private def inSubqueries(command: LogicalPlan, block: Block): LogicalPlan =
    command.transformExpressions { case query: SubqueryExpression =>
      query.withNewPlan(withFiles(query.plan, block))
    }

  private def withFiles(query: LogicalPlan, block: Block): LogicalPlan =
    query.transformWithSubqueries {
      case scan @ LogicalRelation(relation: HadoopFsRelation, _, _, _, _) =>
        relation.location match {
          case files: TahoeLogFileIndex if !files.isTimeTravelQuery =>
            val ours = block.index(files)
            if (ours eq files) scan
            else scan.copy(relation = relation.copy(location = ours)(relation.sparkSession))
          case _ => scan
        }
    }
}
