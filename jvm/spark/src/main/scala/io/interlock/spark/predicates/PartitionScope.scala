package io.interlock.spark.predicates

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.sources.DeltaDataSource
import org.apache.spark.sql.types.{CharType, StructField, StructType}

/** The predicate of a statement with `PARTITION (column = value, ...)`. */
object PartitionScope {

  /** @param values
    *   values of some of these columns, as the statement writes them; None for NULL
    * @param orElse
    *   the end of the error's advice for a column that is not a partition column: what else may be
    *   done
    * @return
    *   nothing if the statement names no partition
    * @throws InterlockException
    *   INTERLOCK_NOT_A_PARTITION_COLUMN
    * @throws SparkRuntimeException
    *   CAST_INVALID_INPUT for a value that does not have its column's type, even without ANSI mode
    */
  def predicate(
      session: SparkSession,
      table: String,
      columns: StructType,
      values: Map[String, Option[String]],
      orElse: String = ""
  ): Option[Expression] =
    values.map { case (name, value) =>
      val column = columns
        .find(c => session.sessionState.conf.resolver(c.name, name))
        .getOrElse(throw InterlockException(
          "INTERLOCK_NOT_A_PARTITION_COLUMN",
          "column" -> name,
          "table" -> table,
          "orElse" -> orElse,
          "columns" -> (if (columns.isEmpty) "none" else columns.map(_.name).mkString(", "))
        ))
      equality(session, column, value)
    }.reduceOption(And(_, _))

  /** Refuses a path such as `/table@v1` or `/table/p=1`, which Delta treats as the whole table.
    *
    * @throws InterlockException
    *   INTERLOCK_NOT_A_WHOLE_TABLE
    */
  def refusePath(session: SparkSession, table: DeltaTableV2, statement: String): Unit = {
    // Of a table by name its catalog knows the path, and how the storage is reached.
    def isPart = {
      val (_, partitions, version) =
        DeltaDataSource.parsePathIdentifier(session, table.path.toString, table.options)
      partitions.nonEmpty || version.nonEmpty
    }
    if (table.timeTravelOpt.nonEmpty || table.catalogTable.isEmpty && isPart)
      throw InterlockException(
        "INTERLOCK_NOT_A_WHOLE_TABLE",
        "operation" -> statement,
        "path" -> table.path.toString
      )
  }

  private def equality(
      session: SparkSession,
      column: StructField,
      value: Option[String]
  ): Expression = {
    val typed = value.fold(Literal(null, column.dataType)) { text =>
      val timeZone = Some(session.sessionState.conf.sessionLocalTimeZone)
      val value = Cast(Literal(text), column.dataType, timeZone, EvalMode.ANSI)
      Literal(padded(value, column).eval(), column.dataType)
    }
    EqualNullSafe(padded(toAttribute(column), column), typed)
  }

  /** A value as its column stores it: in a CHAR(n) with trailing spaces. */
  def padded(value: Expression, column: StructField): Expression =
    CharVarcharUtils.getRawType(column.metadata) match {
      case Some(char: CharType) => StringRPad(value, Literal(char.length), Literal(" "))
      case _ => value
    }
}
