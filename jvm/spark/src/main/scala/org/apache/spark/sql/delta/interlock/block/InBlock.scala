package org.apache.spark.sql.delta.interlock.block

import io.interlock.spark.errors.InterlockException
import io.interlock.spark.properties.Exclusive
import org.apache.spark.sql.delta.DeltaOperations.Operation
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.sources.DeltaSourceUtils.IDENTITY_INFO_HIGHWATERMARK
import org.apache.spark.sql.types.{MetadataBuilder, StructField}

/** What an atomic block refuses. */
object InBlock {

  /** Delta's names of the operations that a block takes. */
  private val taken = Set("WRITE", "UPDATE", "DELETE", "MERGE", "TRUNCATE")

  /** @throws InterlockException
    *   INTERLOCK_NOT_IN_BLOCK, if a statement does more than change rows
    */
  private[block] def refuse(
      op: Operation,
      table: String,
      before: Metadata,
      metadata: Option[Metadata],
      protocol: Option[Protocol]
  ): Unit = {
    if (!taken(op.name)) throw refused(op.name)
    if (protocol.nonEmpty || metadata.exists(withoutIdentity(_) != withoutIdentity(before)))
      throw refused(
        s"${op.name} of $table",
        "It would change the columns or properties of the table.",
        "Change them before the block."
      )
  }

  /** Metadata without the highest values of identity columns, which each INSERT may raise. */
  private def withoutIdentity(metadata: Metadata) =
    (metadata.copy(schemaString = ""), fields(metadata)(_.remove(IDENTITY_INFO_HIGHWATERMARK)))

  /** The columns of a table, as far as they decide what a statement reads. */
  private[block] def columns(metadata: Metadata): Seq[StructField] =
    fields(metadata)(_.remove(IDENTITY_INFO_HIGHWATERMARK).remove("comment"))

  private def fields(metadata: Metadata)(without: MetadataBuilder => MetadataBuilder) =
    metadata.schema.map(field =>
      field.copy(metadata = without(new MetadataBuilder().withMetadata(field.metadata)).build())
    )

  /** The error for a statement that is no change of rows and no query. */
  def refused(statement: String): InterlockException = refused(
    statement,
    "A block takes SELECT, INSERT, UPDATE, DELETE, MERGE, TRUNCATE and DESCRIBE of Delta tables.",
    "Run it before or after the block."
  )

  private[block] def refusedWithoutPolicy(table: String): InterlockException = refused(
    s"A change of $table",
    "It has no policy, so nothing would judge the block's commit.",
    "Set the table property interlock.policy, or change the table outside of the block."
  )

  private[block] def refusedApart(table: String, first: String): InterlockException = refused(
    s"A change of $table beside one of $first",
    "Only tables with the same coordinator can be committed together.",
    "Give both the same table property interlock.coordinator, or change them in two blocks."
  )

  private[block] def refusedOpen(open: String): InterlockException = refused(
    s"A change of $open and of another table",
    s"Writers without Interlock may write $open, and one could take the version of the block's " +
      "commit when the other table has its own.",
    s"ALTER TABLE $open SET TBLPROPERTIES ('${Exclusive.Key}' = 'true')."
  )

  private[block] def refusedTwice(table: String): InterlockException = refused(
    "This statement",
    s"It names $table by another path than the block has named it by.",
    "Name the table the same way in all statements of the block."
  )

  private[block] def refusedAmidBlocks(table: String): InterlockException = refused(
    s"This statement on $table",
    "Each of its versions has one of two blocks only in part: one is in tables that this block has " +
      "read with it, the other in tables that it has read without it.",
    "Roll the block back and run it again."
  )

  private[block] def refusedOtherColumns(table: String): InterlockException = refused(
    s"This statement on $table",
    "Another job has changed the columns of the table since the block first read it.",
    "Roll the block back and run it again."
  )

  private[block] def refusedAtOnce(table: String): InterlockException = refused(
    s"This change of $table",
    "Another statement of the session has changed the table meanwhile.",
    "Run the statements of a block one after the other."
  )

  private[block] def refusedLate(table: String): InterlockException = refused(
    s"This change of $table",
    "The block that it belongs to ended while it ran.",
    "End a block when all its statements have ended, and run this one again."
  )

  private def refused(what: String, why: String, fix: String): InterlockException =
    InterlockException("INTERLOCK_NOT_IN_BLOCK", "what" -> what, "why" -> why, "fix" -> fix)
}
