package io.interlock.spark.ranges

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/** A point in a table's history. */
sealed trait Point

object Point {

  /** @param id
    *   an ID version; -1 is before the first
    */
  final case class Version(id: Long) extends Point

  /** @param micros
    *   since 1970 UTC; means the last version committed at or before this time
    */
  final case class Time(micros: Long) extends Point
}

/** The rows of a table that exist at `until` and last changed after `after`; the table is not
  * resolved yet.
  */
final case class TableRange(child: LogicalPlan, after: Point, until: Option[Point])
    extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
  override protected def withNewChildInternal(newChild: LogicalPlan): TableRange =
    copy(child = newChild)
}
