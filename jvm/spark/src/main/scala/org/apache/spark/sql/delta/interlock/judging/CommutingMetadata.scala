package org.apache.spark.sql.delta.interlock.judging

import io.interlock.rules.HarmlessProperties
import org.apache.spark.sql.delta.CurrentTransactionInfo
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.types.{
  Metadata => SparkMetadata,
  MetadataBuilder,
  StructField,
  StructType
}

/** Changes of a table's metadata that leave concurrent jobs right: of comments, of harmless
  * properties (see [[HarmlessProperties]]), and new columns at the end that are NULL in all rows.
  */
private[judging] object CommutingMetadata {
  private val Comment = "comment"
  private val Harmless = Set(
    Comment,
    "delta.columnMapping.id",
    "delta.columnMapping.physicalName"
  )

  /** The attempt after a winner that has changed the metadata; none if one of the two changes more
    * than that, or both change the same thing.
    *
    * @param own
    *   the metadata with which the attempt came to its commit
    */
  def rebased(
      info: CurrentTransactionInfo,
      winner: Metadata,
      own: Metadata
  ): Option[CurrentTransactionInfo] =
    merged(info.readSnapshot.metadata, winner, own).map { both =>
      val actions = info.actions.map {
        case _: Metadata => both
        case other => other
      }
      info.copy(metadata = both, actions = if (info.metadataChanged) actions else info.actions)
    }

  private def merged(base: Metadata, one: Metadata, other: Metadata): Option[Metadata] =
    for {
      properties <-
        HarmlessProperties.merged(base.configuration, one.configuration, other.configuration)
      description <- onlyOne(base.description, one.description, other.description)
      schema <- onlyOne(base.schemaString, one.schemaString, other.schemaString)
      if isHarmless(base.schema, one.schema) && isHarmless(base.schema, other.schema)
      both = base.copy(
        configuration = properties,
        description = description,
        schemaString = schema
      )
      if Seq(one, other).forall(isAllOf(_, both))
    } yield both

  /** The value after two changes of which at most one changes it. */
  private def onlyOne[A](base: A, one: A, other: A): Option[A] =
    if (one == base || one == other) Some(other) else Option.when(other == base)(one)

  /** Whether the metadata differ in nothing else than what is merged. */
  private def isAllOf(one: Metadata, both: Metadata): Boolean =
    one.copy(
      configuration = both.configuration,
      description = both.description,
      schemaString = both.schemaString
    ) == both

  private def isHarmless(before: StructType, after: StructType): Boolean = {
    val (kept, added) = withoutComments(after).fields.splitAt(before.fields.length)
    kept.sameElements(withoutComments(before).fields) && added.forall(isNull)
  }

  /** Whether rows that do not have the column have NULL there. */
  private def isNull(column: StructField): Boolean =
    column.nullable && {
      val rest = new MetadataBuilder().withMetadata(column.metadata)
      Harmless.foreach(rest.remove)
      rest.build() == SparkMetadata.empty
    }

  private def withoutComments(schema: StructType): StructType =
    SchemaMergingUtils.transformColumns(schema)((_, field, _) =>
      field.copy(metadata =
        new MetadataBuilder().withMetadata(field.metadata).remove(Comment).build()
      )
    )

}
