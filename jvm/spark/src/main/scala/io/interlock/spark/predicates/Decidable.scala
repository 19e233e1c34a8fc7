package io.interlock.spark.predicates

import org.apache.spark.sql.catalyst.expressions._

/** Which predicates say at the time of a commit what they said when the statement read the table. */
object Decidable {

  /** Subqueries, random values, the current time and functions of users may say something else. */
  def apply(predicate: Expression): Boolean =
    predicate.deterministic && !SubqueryExpression.hasSubquery(predicate) &&
      !replaced(predicate).exists {
        case _: Attribute => false
        case _: UserDefinedExpression | _: Unevaluable => true
        case _ => false
      }

  /** With what stands for functions that are only a name for others, as BETWEEN is for two comparisons. */
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
