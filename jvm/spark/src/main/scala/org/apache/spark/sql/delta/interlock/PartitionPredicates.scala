package org.apache.spark.sql.delta.interlock

import scala.util.Try

import io.interlock.rules.ChangedScope.Partition
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.delta.{DeltaColumnMapping, DeltaTableReadPredicate}
import org.apache.spark.sql.types.StructType

/** Evaluates predicates on partition values, without a Spark job. */
final private[interlock] class PartitionPredicates(spark: SparkSession, partitions: StructType) {
  private val columns = partitions.map(f => AttributeReference(f.name, f.dataType)())
  private val resolver = spark.sessionState.conf.resolver

  /** Whether a SQL predicate uses partition columns only and can be evaluated on their values. */
  def usesPartitionsOnly(sql: String): Boolean = parse(sql).flatMap(resolve).nonEmpty

  /** A SQL predicate that uses partition columns only. Raises where it cannot be evaluated. */
  def ofSql(sql: String): Partition => Boolean = {
    val predicate = parse(sql).flatMap(resolve).getOrElse(
      throw new IllegalArgumentException(s"'$sql' is no predicate on partition columns.")
    )
    evaluate(predicate)
  }

  /** A predicate that uses partition columns only. */
  def of(predicate: Expression): Partition => Boolean =
    evaluate(resolve(predicate).getOrElse(
      throw new IllegalArgumentException(
        s"'${predicate.sql}' is no predicate on partition columns."
      )
    ))

  /** The predicate of a scan on partitions. What cannot be decided (see [[Decidable]], and predicates
    * that Delta has already rewritten) selects every partition.
    */
  def ofRead(read: DeltaTableReadPredicate): Partition => Boolean = {
    val decided = Some(read).filter(_.shouldRewriteFilter).toSeq
      .flatMap(_.partitionPredicates)
      .flatMap(resolve)
      .map(evaluate)
    partition => decided.forall(selects => Try(selects(partition)).getOrElse(true))
  }

  private def parse(sql: String): Option[Expression] =
    Try(spark.sessionState.sqlParser.parseExpression(sql)).toOption

  private def evaluate(predicate: Expression): Partition => Boolean = {
    val interpreted = Predicate.createInterpreted(predicate)
    partition => interpreted.eval(row(partition))
  }

  /** The predicate on the row of partition values; none where it needs anything else. */
  private def resolve(predicate: Expression): Option[Expression] =
    Try {
      val named = predicate.transform { case a: Attribute => column(a).getOrElse(a) }
      val analyzed = spark.sessionState.analyzer
        .execute(Filter(named, LocalRelation(columns)))
        .asInstanceOf[Filter]
      Some(analyzed.condition)
        .filter(Decidable.apply)
        .map(decided => BindReferences.bindReference(Decidable.replaced(decided), columns))
        .filter(_.resolved)
    }.toOption.flatten

  private def column(attribute: Attribute): Option[AttributeReference] = {
    val name = attribute match {
      case unresolved: UnresolvedAttribute => unresolved.nameParts.last
      case other => other.name
    }
    columns.find(c => resolver(c.name, name))
  }

  private def row(partition: Partition): InternalRow =
    InternalRow.fromSeq(partitions.map { field =>
      val value = partition.getOrElse(DeltaColumnMapping.getPhysicalName(field), null)
      Cast(
        Literal(value),
        field.dataType,
        Some(spark.sessionState.conf.sessionLocalTimeZone)
      ).eval()
    })
}
