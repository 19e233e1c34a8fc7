package org.apache.spark.sql.delta.interlock.judging

import scala.collection.mutable

import io.interlock.rules.Partition
import io.interlock.spark.predicates.PartitionScope
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.delta.actions.{CommitInfo, FileAction, RemoveFile}
import org.apache.spark.sql.delta.util.PartitionUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The partitions of a table's files. The log may spell one value in several ways
  * (`2026-01-01 00:00:00` and `2026-01-01T00:00:00.000000Z`, `1.0` and `1.00`, `a` and `a ` in a
  * CHAR(2)): values are read as Delta reads them and compared by their columns' types. Timestamps
  * without a time zone are in the session's time zone.
  */
final class PartitionValues(spark: SparkSession, columns: StructType) {
  private val timeZone = spark.sessionState.conf.sessionLocalTimeZone
  private val known = mutable.HashMap.empty[Map[String, String], Option[Partition]]
  private val readers = columns.map(column => DeltaColumnMapping.getPhysicalName(column) -> column)
    .map { case (physical, column) => physical -> (column -> reader(column)) }
    .toMap

  /** The partition of a file that a commit adds or removes.
    *
    * None if the log does not tell it: a value cannot be read as its column's type or is an empty
    * text (NULL by Delta's protocol, a string for Spark), a key is not a partition column, or a
    * RemoveFile has no values at all, which the protocol permits. If only some values are missing,
    * they are NULL: an AddFile has all others, and Delta leaves NULLs out of a RemoveFile.
    */
  def of(file: FileAction, commit: Option[CommitInfo] = None): Option[Partition] =
    if (columns.isEmpty) Some(Partition(Map.empty))
    else
      Option(file.partitionValues)
        .filter(_.nonEmpty || !file.isInstanceOf[RemoveFile] || commit.exists(isDeltas))
        .flatMap(values => known.getOrElseUpdate(values, partition(values)))

  /** Values of some of the columns, by their names, in their normal form; None if one cannot be
    * read.
    */
  def normal(values: Map[String, String]): Option[Map[String, String]] = {
    val read = readers.values.collect {
      case (column, read) if values.contains(column.name) =>
        column.name -> Option(values(column.name)).map(read)
    }.toMap
    Option.when(!read.values.exists(_.contains(null)))(read.map { case (name, text) =>
      name -> text.orNull
    })
  }

  /** Typed values of a column; none if other values are equal to one of them, or it has no normal
    * form.
    */
  def normal(ordinal: Int, typed: Seq[Any]): Option[Seq[Map[String, String]]] = {
    val column = columns(ordinal)
    val texts = typed.map(value => Option(value).map(text(_, column.dataType)).orNull)
    val read = texts.flatMap(text => normal(Map(column.name -> text)))
    Option.when(UnsafeRowUtils.isBinaryStable(column.dataType) && read.size == texts.size)(read)
  }

  /** The typed values of a partition, in the order of the columns. */
  def row(partition: Partition): InternalRow = InternalRow.fromSeq(columns.map { column =>
    val text = partition.values(column.name)
    cast(Literal(text), column).eval()
  })

  /** Whether Delta's Spark library wrote a commit, with Interlock or without. */
  private def isDeltas(commit: CommitInfo): Boolean =
    commit.engineInfo.exists(_.contains("Delta-Lake/"))

  private def partition(values: Map[String, String]): Option[Partition] = {
    val spelled = readers.map { case (physical, (column, read)) =>
      column.name -> values.get(physical).filter(_ != null).map(read)
    }
    if (!values.keySet.subsetOf(readers.keySet) || spelled.values.exists(_.contains(null))) None
    else Some(Partition(spelled.map { case (name, text) => name -> text.orNull }))
  }

  /** A function from a value's text in the log to its normal form; null for a text that is not a
    * value.
    */
  private def reader(column: StructField): String => String = {
    val typed = cast(BoundReference(0, StringType, nullable = true), column)
    val read = column.dataType match {
      case FloatType | DoubleType => NormalizeNaNAndZero(typed)
      case _ => PartitionScope.padded(typed, column)
    }
    text =>
      if (text.isEmpty) null
      else this.text(read.eval(InternalRow(UTF8String.fromString(text))), column.dataType)
  }

  private def text(value: Any, dataType: DataType): String =
    PartitionUtils.literalToNormalizedString(
      Literal(value, dataType),
      Some(timeZone),
      useUtcNormalizedTimestamp = true
    )

  private def cast(text: Expression, column: StructField): Expression =
    Cast(text, column.dataType, Some(timeZone), EvalMode.LEGACY)
}
