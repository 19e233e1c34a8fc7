package io.interlock.spark.predicates

import org.apache.spark.sql.catalyst.expressions._

/** Predicates that give the same result at commit time as when the statement read the table. */
object Decidable {

  /** False for subqueries, random values, the current time and user-defined functions, whose
    * results may differ.
    */
  def apply(predicate: Expression): Boolean =
    predicate.deterministic && !SubqueryExpression.hasSubquery(predicate) &&
      !replaced(predicate).exists {
        case _: Attribute => false
        case _: UserDefinedExpression | _: Unevaluable => true
        case _ => false
      }

  /** The predicate with functions replaced that are only names for others, such as BETWEEN for two
    * comparisons.
    */
  def replaced(predicate: Expression): Expression =
    predicate.transform { case named: RuntimeReplaceable => named.replacement }.transformUp {
      case shared: With => shared.child.transform { case use: CommonExpressionRef =>
          shared.defs.find(_.id == use.id).fold[Expression](use)(_.child)
        }
    }

  /** As SQL, with plain names of columns. */
  def sql(predicates: Seq[Expression]): String =
    predicates
      .map(_.transform { case a: AttributeReference => a.withQualifier(Nil) }.sql)
      .mkString(" AND ")
}
