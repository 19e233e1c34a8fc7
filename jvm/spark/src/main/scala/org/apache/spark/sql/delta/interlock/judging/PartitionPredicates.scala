package org.apache.spark.sql.delta.interlock.judging

import scala.util.Try

import io.interlock.rules.Partition
import io.interlock.spark.predicates.Decidable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta.DeltaTableReadPredicate
import org.apache.spark.sql.delta.actions.Metadata

/** Evaluates predicates on partition values, without a Spark job.
  *
  * Names are resolved against all columns of the table, as Spark does: `s.p` is a field of `s`,
  * even if there is a partition column `p`.
  */
final class PartitionPredicates(
    spark: SparkSession,
    metadata: Metadata,
    values: PartitionValues
) {
  private val resolver = spark.sessionState.conf.resolver
  private val table = LocalRelation(metadata.schema.map(field =>
    AttributeReference(field.name, field.dataType, field.nullable, field.metadata)()
  ))
  private val columns =
    metadata.partitionSchema.map(field => table.output.find(_.name == field.name).get)

  /** Whether a SQL predicate uses partition columns only and can be evaluated on their values. */
  def usesPartitionsOnly(sql: String): Boolean = parse(sql).flatMap(resolve).nonEmpty

  /** A SQL predicate that uses partition columns only. Throws if it cannot be evaluated. */
  def ofSql(sql: String): Partition => Boolean = only(parse(sql).flatMap(resolve), sql)

  /** A predicate that uses partition columns only. */
  def of(predicate: Expression): Partition => Boolean = only(resolve(predicate), predicate.sql)

  private def only(resolved: Option[Expression], sql: => String): Partition => Boolean =
    evaluate(resolved.getOrElse(
      throw new IllegalArgumentException(s"'$sql' is no predicate on partition columns.")
    ))

  /** The predicate of a scan on partitions. Parts that cannot be decided (see [[Decidable]]), and
    * those that Delta has already rewritten, select every partition.
    */
  def ofRead(read: DeltaTableReadPredicate): Partition => Boolean = {
    val decided = Some(read).filter(_.shouldRewriteFilter).toSeq
      .flatMap(_.partitionPredicates)
      .flatMap(resolve)
      .map(evaluate)
    partition => decided.forall(selects => Try(selects(partition)).getOrElse(true))
  }

  /** The partitions that the predicate of a scan names with `=`, IN or IS NULL: values of partition
    * columns, of which each partition that it selects has all of one entry; none if it may select
    * others.
    */
  def named(read: DeltaTableReadPredicate): Option[Seq[Map[String, String]]] =
    read.partitionPredicates.flatMap(resolve).reduceOption(And(_, _))
      .flatMap(predicate => Try(namedBy(predicate)).toOption.flatten)

  private def namedBy(predicate: Expression): Option[Seq[Map[String, String]]] = predicate match {
    case And(left, right) => Seq(left, right).flatMap(namedBy(_)) match {
        case Seq(ofLeft, ofRight) => Some(for {
            one <- ofLeft
            other <- ofRight
            if one.forall { case (key, value) => other.getOrElse(key, value) == value }
          } yield one ++ other)
        case one => one.headOption
      }
    case Or(left, right) =>
      for (ofLeft <- namedBy(left); ofRight <- namedBy(right)) yield ofLeft ++ ofRight
    case IsNull(column: BoundReference) => values.normal(column.ordinal, Seq(null))
    case EqualNullSafe(column: BoundReference, value) if value.foldable =>
      values.normal(column.ordinal, Seq(value.eval()))
    case EqualTo(column: BoundReference, value) if value.foldable =>
      notNull(column, Seq(value.eval()))
    case EqualTo(value, column: BoundReference) if value.foldable =>
      notNull(column, Seq(value.eval()))
    case In(column: BoundReference, list) if list.forall(_.foldable) =>
      notNull(column, list.map(_.eval()))
    case InSet(column: BoundReference, list) => notNull(column, list.toSeq)
    case _ => None
  }

  private def notNull(column: BoundReference, typed: Seq[Any]) =
    values.normal(column.ordinal, typed.filter(_ != null))

  private def parse(sql: String): Option[Expression] =
    Try(spark.sessionState.sqlParser.parseExpression(sql)).toOption

  private def evaluate(predicate: Expression): Partition => Boolean = {
    val interpreted = Predicate.createInterpreted(predicate)
    partition => interpreted.eval(values.row(partition))
  }

  /** The predicate on the row of partition values; none if it needs anything else. */
  private def resolve(predicate: Expression): Option[Expression] = {
    val named = predicate.transform { case a: AttributeReference =>
      table.output.find(column => resolver(column.name, a.name)).getOrElse(a)
    }
    relations(named).flatMap(analyzed(named, _)).nextOption()
      .filter(condition => condition.references.subsetOf(AttributeSet(columns)))
      .filter(Decidable.apply)
      .map(decided => BindReferences.bindReference(Decidable.replaced(decided), columns))
  }

  private def analyzed(predicate: Expression, relation: LogicalPlan): Option[Expression] =
    Try(spark.sessionState.analyzer.execute(Filter(predicate, relation))).toOption.collect {
      case Filter(condition, _) if condition.resolved => condition
    }

  /** The table, and the table under each alias that the predicate puts before a column's name: the
    * writer's option `targetAlias` is not in the log.
    */
  private def relations(predicate: Expression): Iterator[LogicalPlan] =
    Iterator(table) ++ predicate.collect {
      case UnresolvedAttribute(alias +: _ +: _) => SubqueryAlias(alias, table)
    }
}
