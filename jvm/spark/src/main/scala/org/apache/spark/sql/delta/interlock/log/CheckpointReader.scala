package org.apache.spark.sql.delta.interlock.log

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.JsonNodeFactory.{instance => json}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.ColumnIOFactory
import org.apache.parquet.schema.LogicalTypeAnnotation.{listType, mapType}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.parquet.schema.{MessageType, Type}
import org.apache.spark.sql.delta.actions.{Action, SingleAction}
import org.apache.spark.sql.delta.util.JsonUtils

/** Reads a checkpoint that is one Parquet file, without a Spark job: its rows are the JSON that the
  * log has, but for [[ColumnsOnly]].
  */
private[log] object CheckpointReader {

  /** Fields of `add` that repeat others in columns of their own types. */
  private val ColumnsOnly = Set("partitionValues_parsed", "stats_parsed")

  /** The actions; none if there are more than `most`, or if Delta has to read them: of version 2, or
    * with statistics in columns alone.
    */
  def read(file: FileStatus, conf: Configuration, most: Int): Option[Vector[Action]] =
    Using.resource(ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))) { reader =>
      val schema = reader.getFileMetaData.getSchema
      Option.when(
        reader.getRecordCount <= most && !schema.containsField("sidecar") &&
          schema.containsPath(Array("add", "stats"))
      ) {
        val needed = withoutColumns(schema)
        reader.setRequestedSchema(needed)
        Iterator.continually(reader.readNextRowGroup()).takeWhile(_ != null)
          .flatMap(rows(_, needed, schema))
          .map(row => JsonUtils.mapper.treeToValue(node(row), classOf[SingleAction]).unwrap)
          .toVector
      }
    }

  private def withoutColumns(schema: MessageType): MessageType = {
    val fields = schema.getFields.asScala.map {
      case add if add.getName == "add" =>
        val kept = add.asGroupType.getFields.asScala.filterNot(field => ColumnsOnly(field.getName))
        add.asGroupType.withNewFields(kept.asJava)
      case other => other
    }
    new MessageType(schema.getName, fields.asJava)
  }

  private def rows(pages: PageReadStore, needed: MessageType, schema: MessageType) = {
    val columns = new ColumnIOFactory().getColumnIO(needed, schema)
    val records = columns.getRecordReader(pages, new GroupRecordConverter(needed))
    Iterator.fill(pages.getRowCount.toInt)(records.read())
  }

  private def node(group: Group): JsonNode = group.getType.getLogicalTypeAnnotation match {
    case annotation if annotation == mapType =>
      val entries = json.objectNode()
      for (n <- 0 until group.getFieldRepetitionCount(0)) {
        val entry = group.getGroup(0, n)
        entries.set[JsonNode](entry.getString(0, 0), value(entry, 1))
      }
      entries
    case annotation if annotation == listType =>
      val elements = json.arrayNode()
      for (n <- 0 until group.getFieldRepetitionCount(0))
        elements.add(value(group.getGroup(0, n), 0))
      elements
    case _ =>
      val fields = json.objectNode()
      for (n <- 0 until group.getType.getFieldCount)
        fields.set[JsonNode](group.getType.getFieldName(n), value(group, n))
      fields
  }

  private def value(group: Group, field: Int): JsonNode = {
    def primitive(kind: Type) = kind.asPrimitiveType.getPrimitiveTypeName match {
      case BOOLEAN => json.booleanNode(group.getBoolean(field, 0))
      case INT32 => json.numberNode(group.getInteger(field, 0))
      case INT64 => json.numberNode(group.getLong(field, 0))
      case BINARY => json.textNode(group.getString(field, 0))
      case other => throw new IllegalArgumentException(s"No field of the log has type $other.")
    }
    val kind = group.getType.getType(field)
    if (kind.isRepetition(Type.Repetition.REPEATED))
      throw new IllegalArgumentException(s"$kind is neither a list nor a map.")
    else if (group.getFieldRepetitionCount(field) == 0) json.nullNode
    else if (kind.isPrimitive) primitive(kind)
    else node(group.getGroup(field, 0))
  }
}
