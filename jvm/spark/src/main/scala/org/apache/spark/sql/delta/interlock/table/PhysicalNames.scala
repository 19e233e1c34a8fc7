package org.apache.spark.sql.delta.interlock.table

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Locale, UUID}

import org.apache.spark.sql.delta.DeltaColumnMapping.{assignPhysicalName, hasPhysicalName}
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.schema.SchemaMergingUtils.transformColumns
import org.apache.spark.sql.delta.schema.SchemaUtils.findNestedFieldIgnoreCase
import org.apache.spark.sql.delta.{DeltaConfigs, NoMapping}

/** Names of new columns in the data files of a table with column mapping. Two jobs that add a column
  * to one schema give it the same name, so that each can read the other's files. No later column has
  * it, because the table's highest column id is part of it.
  */
private[interlock] object PhysicalNames {

  /** @param read
    *   the metadata that the statement has read
    */
  def stable(proposed: Metadata, read: Metadata): Metadata =
    if (read.columnMappingMode == NoMapping || proposed.schemaString == read.schemaString) proposed
    else {
      val highest = DeltaConfigs.COLUMN_MAPPING_MAX_ID.fromMetaData(read)
      val named = transformColumns(proposed.schema) { (above, field, _) =>
        val path = above :+ field.name
        if (hasPhysicalName(field) || findNestedFieldIgnoreCase(read.schema, path, true).nonEmpty)
          field
        else {
          val key =
            Seq(read.id, highest.toString, field.dataType.json, path.mkString("/")).mkString(" ")
          val id = UUID.nameUUIDFromBytes(key.toLowerCase(Locale.ROOT).getBytes(UTF_8))
          assignPhysicalName(field, s"col-$id")
        }
      }
      proposed.copy(schemaString = named.json)
    }
}
