package org.apache.spark.sql.delta.interlock.statement

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.commands.DeletionVectorBitmapGenerator.{
  FILE_NAME_COL,
  ROW_INDEX_COL
}
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Keeps the columns of a table with a policy apart from those of Delta's query for the rows to mark
  * dead.
  *
  * Delta adds a row's file and its index in it to the columns of the table and of a MERGE's source,
  * then joins the file's deletion vector, and finds all by name: a name that the table or the source
  * has as well would be ambiguous. Here only Delta's file stays of columns with its name, and once
  * the index is known, no other column, for none is needed.
  */
object MarkedRows extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case Project(columns, rows) =>
      def added(name: String) = columns.find(isOfRow(_, name)).filter(_ => isOfPoliced(rows))
      def isFile(column: NamedExpression) = rows.exists {
        case Project(below, _) =>
          below.exists(file => file.exprId == column.exprId && isOfRow(file, FILE_NAME_COL))
        case _ => false
      }
      added(FILE_NAME_COL).map(file => columns.filter(_.name != FILE_NAME_COL) :+ file)
        .orElse(added(ROW_INDEX_COL).flatMap(index => columns.find(isFile).map(Seq(_, index))))
        .fold(plan)(Project(_, rows))
    case other => other
  }

  /** Whether Delta adds the column here. */
  private def isOfRow(column: NamedExpression, name: String): Boolean = column match {
    case Alias(GetStructField(FileSourceMetadataAttribute(_), _, _), `name`) => true
    case _ => false
  }

  private def isOfPoliced(rows: LogicalPlan): Boolean =
    rows.collectLeaves().collect { case table: LogicalRelation => table.relation }.exists {
      case HadoopFsRelation(index: TahoeBatchFileIndex, _, _, _, _, _) =>
        SessionPolicy.of(index).nonEmpty
      case _ => false
    }
}
