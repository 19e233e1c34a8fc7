package io.interlock.spark.procedures

import java.util.Collections

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}

/** A procedure that returns one set of rows. */
abstract private[procedures] class InterlockProcedure extends ProcedureOfOneForm {
  def outputType: StructType

  protected def run(session: SparkSession, arguments: Arguments): Iterator[Row]

  final override def isDeterministic: Boolean = false

  final override def call(arguments: InternalRow): java.util.Iterator[Scan] = {
    val named = new Arguments(parameters.map(_.name).toSeq, arguments)
    val found = LocalRows.of(outputType, run(SparkSession.active, named))
    Collections.singleton[Scan](found).iterator
  }
}

final private[procedures] case class LocalRows(found: Array[InternalRow], readSchema: StructType)
    extends LocalScan {
  override def rows(): Array[InternalRow] = found
}

private[procedures] object LocalRows {

  /** All rows, read now. */
  def of(schema: StructType, rows: Iterator[Row]): LocalRows = {
    val toCatalyst = CatalystTypeConverters.createToCatalystConverter(schema)
    LocalRows(rows.map(toCatalyst(_).asInstanceOf[InternalRow]).toArray, schema)
  }
}

/** Parameters that several procedures have. */
private[procedures] object Parameters {
  val Table: ProcedureParameter =
    ProcedureParameter.in("table", StringType).comment("a Delta table: db.t, or its path").build()

  val Partition: ProcedureParameter =
    ProcedureParameter
      .in("partition", MapType(StringType, StringType))
      .comment("values of partition columns; all partitions by default")
      .defaultValue("NULL")
      .build()

  val Limit: ProcedureParameter =
    ProcedureParameter
      .in("limit", DoubleType) // Spark would cut off the digits after the point
      .comment("the most rows to return; all by default")
      .defaultValue("NULL")
      .build()
}

/** The values of a procedure's parameters. */
final private[procedures] class Arguments(names: Seq[String], values: InternalRow) {

  /** None for NULL. */
  def text(name: String): Option[String] =
    ordinal(name).map(values.getUTF8String).map(_.toString)

  /** None for NULL. */
  def number(name: String): Option[Double] = ordinal(name).map(values.getDouble)

  /** The elements of an array; none for NULL. */
  def texts(name: String): Seq[Option[String]] =
    ordinal(name).toSeq.flatMap(values.getArray(_).toArray[Any](StringType))
      .map(Option(_).map(_.toString))

  /** @throws InterlockException
    *   INTERLOCK_INVALID_ARGUMENT for NULL
    */
  def needed(name: String, what: String, expected: String): String =
    text(name).getOrElse(throw InterlockException.invalidArgument(what, "NULL", expected))

  def table: String = needed(Parameters.Table.name, "the table", "a table's name")

  def partition: Map[String, Option[String]] =
    ordinal(Parameters.Partition.name).fold(Map.empty[String, Option[String]]) { at =>
      val found = values.getMap(at)
      found.keyArray().toArray[Any](StringType)
        .zip(found.valueArray().toArray[Any](StringType))
        .map { case (column, value) => column.toString -> Option(value).map(_.toString) }
        .toMap
    }

  /** @throws InterlockException
    *   INTERLOCK_INVALID_ARGUMENT for limits that are negative or not whole
    */
  def limited[A](all: Iterator[A]): Iterator[A] = number(Parameters.Limit.name).fold(all) { limit =>
    if (!limit.isWhole || limit < 0)
      throw InterlockException.invalidArgument(
        "the limit",
        if (limit.isNaN || limit.isInfinite) limit.toString
        else BigDecimal(limit).bigDecimal.stripTrailingZeros.toPlainString,
        "a whole number, 0 or more"
      )
    all.take(limit.min(Int.MaxValue.toDouble).toInt)
  }

  private def ordinal(name: String): Option[Int] =
    Some(names.indexOf(name)).filterNot(values.isNullAt)
}
