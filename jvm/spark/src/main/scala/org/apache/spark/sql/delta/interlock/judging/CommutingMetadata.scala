package org.apache.spark.sql.delta.interlock.judging

import java.util.Locale

import io.interlock.rules.MetadataPart._
import io.interlock.rules.{MetadataMerge, MetadataPart}
import org.apache.spark.sql.delta.actions.{AddFile, FileAction, Metadata}
import org.apache.spark.sql.delta.schema.SchemaMergingUtils.{explode, transformColumns}
import org.apache.spark.sql.delta.schema.SchemaUtils
import org.apache.spark.sql.delta.{
  CurrentTransactionInfo,
  DeltaColumnMapping,
  DeltaConfigs,
  DeltaOperations,
  IcebergCompat,
  NameMapping,
  NoMapping
}
import org.apache.spark.sql.types.{Metadata => FieldMetadata, _}

/** The metadata of an attempt behind winners that changed the metadata as well.
  *
  * @param base
  *   what the attempt has read
  * @param winner
  *   the metadata after the winners
  * @param own
  *   the metadata with which the attempt came to its commit
  */
final private[judging] class CommutingMetadata(base: Metadata, winner: Metadata, own: Metadata) {
  import CommutingMetadata._

  private val before = fields(base.schema).map(_._1).toSet

  /** The columns that all have. */
  private val common =
    Seq(winner, own).map(of => fields(of.schema).map(_._1).toSet).foldLeft(before)(_ & _)
  private val idsBefore = fields(base.schema).flatMap { case (_, field) => idOf(field) }.toSet
  private val (read, theirs, ours) = (partsOf(base), partsOf(winner), partsOf(own))
  private val isMapped = base.columnMappingMode != NoMapping
  private val winnerHasNewIds = isMapped && lastId(winner) != lastId(base)

  /** @param info
    *   the attempt
    * @return
    *   the attempt after the winner, or why there is none
    */
  def rebased(info: CurrentTransactionInfo): Either[String, CurrentTransactionInfo] =
    merged(info.actions.exists(_.isInstanceOf[FileAction]))
      .filterOrElse(
        hasOwnNames(_) || !info.actions.exists(_.isInstanceOf[AddFile]),
        "added columns, and the files of this job have its own new columns under other names or ids"
      )
      .filterOrElse(
        _ => !definesAnew(info.op) || Seq(winner, own).exists(_.schema == base.schema),
        "changed the table's schema, and this job defines it anew"
      )
      .map { both =>
        val actions = info.actions.map {
          case _: Metadata => both
          case other => other
        }
        info.copy(metadata = both, actions = if (info.metadataChanged) actions else info.actions)
      }

  private def merged(writesData: Boolean): Either[String, Metadata] =
    new MetadataMerge(read, theirs, ours)(addsNulls).merged(writesData)
      .flatMap { both =>
        val isOwn = winner.schema == base.schema
        val kept = if (isOwn) own else winner
        val schema = if (isOwn) ownSchema else added.foldLeft(winner.schema)(withColumn)
        // If the winner has given ids, those of the attempt count no more.
        val sources = Seq(base, winner) ++ Option.when(!winnerHasNewIds)(own)
        val highest = sources.flatMap(lastId).maxByOption(_.toLong)
        val properties = both.collect { case (Property(key), value: String) => key -> value }
        val merged = kept.copy(
          description = both.get(TableComment).map(_.toString).orNull,
          configuration = properties ++ highest.map(LastId -> _),
          schemaString = commented(schema, both).json
        )
        val result =
          if (!winnerHasNewIds) merged
          else
            DeltaColumnMapping.assignColumnIdAndPhysicalName(
              merged,
              winner,
              isChangingModeOnExistingTable = false,
              isOverwritingSchema = false
            )
        // A harmless change of the winner may be only part of what the attempt changes.
        Either.cond(
          partsOf(result) == both,
          result,
          "changed the table's schema, and this job changes it as well"
        )
      }

  /** Whether it is a new column, and not an old one with another name. */
  private def isNewColumn(path: Seq[String], field: StructField) =
    !before(path) && !idOf(field).exists(idsBefore)

  /** Whether the attempt's new columns keep the names by which its files know them, and get other
    * ids: readers of this mode do not look at the ids. Not if a column may have had such a name, and
    * was dropped or renamed since.
    */
  private lazy val keepsNames = {
    def newFields(of: Metadata) = fields(of.schema).filter { case (path, field) =>
      isNewColumn(path, field)
    }
    val (their, its) = (newFields(winner), newFields(own))
    base.columnMappingMode == NameMapping && !IcebergCompat.isAnyEnabled(winner) &&
    idsBetween(base, winner).forall(their.flatMap { case (_, field) => idOf(field) }.toSet) &&
    !its.exists { case (path, field) =>
      their.exists(other => other._1 != path && physical(other._2) == physical(field))
    }
  }

  /** The attempt's schema. Its new columns have no ids if the winner may have given them to others.
    */
  private lazy val ownSchema: StructType =
    if (!winnerHasNewIds) own.schema
    else
      transformColumns(own.schema) { (path, field, _) =>
        if (!isNewColumn(lower(path :+ field.name), field)) field
        else {
          val metadata = new MetadataBuilder().withMetadata(field.metadata)
          if (!keepsNames) withoutName(metadata): Unit
          field.copy(metadata = withoutId(metadata).build())
        }
      }

  /** Whether the attempt's new columns have the names and ids by which its files know them. */
  private def hasOwnNames(both: Metadata): Boolean = {
    def names(of: Metadata) = fields(of.schema).map { case (path, field) =>
      path -> (physical(field) -> (if (keepsNames) None else idOf(field)))
    }.toMap
    val after = names(both)
    names(own).forall { case (path, name) => before(path) || after.get(path).contains(name) }
  }

  private def partsOf(metadata: Metadata): Map[MetadataPart, Any] = {
    val rest = metadata.copy(description = null, configuration = Map(), schemaString = null)
    columns(metadata.schema) + (Definition -> rest) ++
      (metadata.configuration - LastId).map { case (key, value) => Property(key) -> value } ++
      Option(metadata.description).map(TableComment -> _)
  }

  private def columns(schema: StructType): Map[MetadataPart, Any] = {
    val all = fields(schema)
    val places = all.foldLeft((Map.empty[Seq[String], String], Map.empty[Seq[String], String])) {
      case ((places, last), (path, field)) =>
        val next = if (common(path)) last + (path.init -> field.name) else last
        (places + (path -> last.getOrElse(path.init, "")), next)
    }._1
    all.flatMap { case (path, field) =>
      Seq[(MetadataPart, Any)](Column(path) -> Shape(bare(path, field), places(path))) ++
        field.getComment().map(ColumnComment(path) -> _)
    }.toMap
  }

  /** A field without its comment and the fields inside it; a new one also without id and name. */
  private def bare(path: Seq[String], field: StructField): StructField = {
    val metadata = withoutComment(field)
    if (isNewColumn(path, field)) withoutName(withoutId(metadata)): Unit
    val name = if (before(path)) field.name else path.last
    StructField(name, hollow(field.dataType), field.nullable, metadata.build())
  }

  private def addsNulls(column: Column): Boolean =
    Seq(theirs, ours).map(_.get(column)).forall {
      case Some(Shape(field, _)) =>
        val rest = new MetadataBuilder().withMetadata(field.metadata).remove(CharType)
        field.nullable && rest.build() == FieldMetadata.empty
      case _ => true
    }

  /** The attempt's new columns that the winner does not have; of nested ones the outermost. */
  private def added: Seq[(Seq[String], StructField)] = {
    def isNew(path: Seq[String]) =
      ours.contains(Column(lower(path))) && !theirs.contains(Column(lower(path)))
    explode(ownSchema).filter { case (path, _) =>
      isNew(path) && !path.init.inits.exists(isNew)
    }
  }

  /** Puts a new column of the attempt behind the column that it follows there, or at the end. */
  private def withColumn(schema: StructType, column: (Seq[String], StructField)): StructType = {
    val (path, field) = column
    def siblings(of: StructType) =
      fields(of).map(_._1).filter(_.init == lower(path.init))
    val (left, right) = siblings(own.schema).span(_ != lower(path))
    val there = siblings(schema)
    val index =
      if (right.exists(before)) left.lastOption.fold(0)(there.indexOf(_) + 1) else there.length
    SchemaUtils
      .addColumn(schema, field, SchemaUtils.findColumnPosition(path.init, schema) :+ index)
  }

  private def commented(schema: StructType, parts: Map[MetadataPart, Any]): StructType =
    transformColumns(schema) { (path, field, _) =>
      val metadata = withoutComment(field)
      parts.get(ColumnComment(lower(path :+ field.name)))
        .foreach(comment => metadata.putString("comment", comment.toString))
      field.copy(metadata = metadata.build())
    }
}

private object CommutingMetadata {
  private val LastId = DeltaConfigs.COLUMN_MAPPING_MAX_ID.key
  private val PhysicalName = DeltaColumnMapping.COLUMN_MAPPING_PHYSICAL_NAME_KEY

  /** Where Spark keeps the length of a CHAR or VARCHAR. */
  private val CharType = "__CHAR_VARCHAR_TYPE_STRING"

  /** @param place
    *   the name of the last column before it that all have, if there is one
    */
  final private case class Shape(field: StructField, place: String) {
    override def toString: String =
      field.dataType.sql + (if (place.isEmpty) " FIRST" else s" AFTER $place")
  }

  private def lower(path: Seq[String]) = path.map(_.toLowerCase(Locale.ROOT))

  private def idOf(field: StructField) =
    Option.when(DeltaColumnMapping.hasColumnId(field))(DeltaColumnMapping.getColumnId(field))

  private def lastId(of: Metadata) = of.configuration.get(LastId)

  private def idsBetween(one: Metadata, later: Metadata): Seq[Long] =
    lastId(one).zip(lastId(later)).toSeq.flatMap { case (a, b) => a.toLong + 1 to b.toLong }

  /** All fields, also nested ones, by their path in lower case. */
  private def fields(schema: StructType): Seq[(Seq[String], StructField)] =
    explode(schema).map { case (path, field) => lower(path) -> field }

  private def physical(field: StructField) = DeltaColumnMapping.getPhysicalName(field)

  private def withoutId(metadata: MetadataBuilder): MetadataBuilder =
    (DeltaColumnMapping.COLUMN_MAPPING_METADATA_KEYS - PhysicalName).foldLeft(metadata)(_ remove _)

  private def withoutName(metadata: MetadataBuilder): MetadataBuilder =
    metadata.remove(PhysicalName)

  private def withoutComment(field: StructField) =
    new MetadataBuilder().withMetadata(field.metadata).remove("comment")

  private def hollow(of: DataType): DataType = of match {
    case _: StructType => new StructType
    case array: ArrayType => array.copy(elementType = hollow(array.elementType))
    case map: MapType => map.copy(hollow(map.keyType), hollow(map.valueType))
    case other => other
  }

  private def definesAnew(op: DeltaOperations.Operation) = op match {
    case _: DeltaOperations.ReplaceTable => true
    case write: DeltaOperations.Write => write.canOverwriteSchema.contains(true)
    case _ => false
  }
}
