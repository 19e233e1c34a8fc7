package org.apache.spark.sql.delta.interlock

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{And, Cast, EqualNullSafe, Expression, Literal}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.sources.DeltaDataSource
import org.apache.spark.sql.types.{StructField, StructType}

/** What a statement with `PARTITION (column = value, ...)` is about. */
private[interlock] object PartitionScope {

  /** @param columns
    *   the table's partition columns
    * @param values
    *   of any of them, as the statement writes them; none for NULL
    * @return
    *   nothing where the statement names no partition
    * @throws InterlockException
    *   INTERLOCK_NOT_A_PARTITION_COLUMN
    */
  def predicate(
      session: SparkSession,
      table: String,
      columns: StructType,
      values: Map[String, Option[String]]
  ): Option[Expression] =
    values.map { case (name, value) =>
      val column = columns
        .find(c => session.sessionState.conf.resolver(c.name, name))
        .getOrElse(throw InterlockException.notAPartitionColumn(name, table, columns.map(_.name)))
      equality(session, column, value)
    }.reduceOption(And(_, _))

  /** Refuses a path such as `/table@v1` or `/table/p=1`, which Delta takes for the whole table.
    *
    * @throws InterlockException
    *   INTERLOCK_NOT_A_WHOLE_TABLE
    */
  def refusePath(session: SparkSession, table: DeltaTableV2, statement: String): Unit = {
    val (_, partitions, version) =
      DeltaDataSource.parsePathIdentifier(session, table.path.toString, table.options)
    val isPart = table.catalogTable.isEmpty && (partitions.nonEmpty || version.nonEmpty)
    if (isPart || table.timeTravelOpt.nonEmpty)
      throw InterlockException.notAWholeTable(statement, table.path.toString)
  }

  private def equality(
      session: SparkSession,
      column: StructField,
      value: Option[String]
  ): Expression = {
    val typed = value.fold(Literal(null, column.dataType)) { text =>
      val timeZone = Some(session.sessionState.conf.sessionLocalTimeZone)
      Literal(Cast(Literal(text), column.dataType, timeZone).eval(), column.dataType)
    }
    EqualNullSafe(UnresolvedAttribute.quoted(column.name), typed)
  }
}
