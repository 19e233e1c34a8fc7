package org.apache.spark.sql.delta.interlock.judging

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types._

/** Rows of a source, in memory, that can be asked for one that matches a row of the target.
  *
  * @param target
  *   the columns of the target that the condition names
  * @param source
  *   the columns of these rows, all that the condition names
  * @param condition
  *   the condition by which they match
  */
final private[judging] class SourceRows(
    target: Seq[Attribute],
    source: Seq[Attribute],
    condition: Expression,
    rows: Array[InternalRow]
) extends Serializable {
  private val (targetKeys, sourceKeys) = SourceRows.keys(target, source, condition)
  private val bound = BindReferences.bindReference(condition, AttributeSeq(target ++ source))

  @transient private lazy val matches = Predicate.create(bound)
  @transient private lazy val byKey = rows.groupBy(keyOf(_, sourceKeys))

  /** The maximum number of rows that a row of the target is compared with. */
  def mostPerKey: Int = byKey.values.map(_.length).maxOption.getOrElse(0)

  /** A row of these that matches a row with the columns `target`. */
  def matching(row: InternalRow): Option[InternalRow] =
    byKey.getOrElse(keyOf(row, targetKeys), Array.empty[InternalRow])
      .find(found => matches.eval(new JoinedRow(row, found)))

  private def keyOf(row: InternalRow, keys: Seq[Expression]): Seq[Any] = keys.map(_.eval(row))
}

private[judging] object SourceRows extends PredicateHelper {

  /** Pairs of expressions, on the target and on the source, that are equal wherever the condition
    * holds. They only narrow the search: the condition is evaluated all the same.
    */
  def keys(
      target: Seq[Attribute],
      source: Seq[Attribute],
      condition: Expression
  ): (Seq[Expression], Seq[Expression]) = {
    def of(expression: Expression, columns: Seq[Attribute]) =
      expression.references.nonEmpty && expression.references.subsetOf(AttributeSet(columns))
    def bind(expression: Expression, columns: Seq[Attribute]) =
      BindReferences.bindReference(expression, AttributeSeq(columns))
    splitConjunctivePredicates(condition).collect {
      case Equality(left, right) if isKey(left.dataType) && left.dataType == right.dataType =>
        Seq(left -> right, right -> left).collectFirst {
          case (one, other) if of(one, target) && of(other, source) =>
            bind(one, target) -> bind(other, source)
        }
    }.flatten.unzip
  }

  /** Types whose values are equal in Scala where they are equal in Spark. */
  private def isKey(dataType: DataType): Boolean = dataType match {
    case text: StringType => text.supportsBinaryEquality
    case _: IntegralType | _: DecimalType | BooleanType => true
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}

/** A row of a source, as a struct, that matches a row of the target; null if none does.
  *
  * @param children
  *   the columns of the target that the condition names
  */
final private[judging] case class MatchingSourceRow(
    children: Seq[Expression],
    source: SourceRows,
    override val dataType: StructType
) extends Expression with CodegenFallback {
  override def nullable: Boolean = true

  override def eval(row: InternalRow): Any =
    source.matching(InternalRow.fromSeq(children.map(_.eval(row)))).orNull

  override protected def withNewChildrenInternal(
      columns: IndexedSeq[Expression]
  ): MatchingSourceRow = copy(children = columns)
}
