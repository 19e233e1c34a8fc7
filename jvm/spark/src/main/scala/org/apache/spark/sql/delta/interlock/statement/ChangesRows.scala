package org.apache.spark.sql.delta.interlock.statement

import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.delta.{DeltaErrors, DeltaOperations, OptimisticTransaction}
import org.apache.spark.sql.types.StructType

/** A command that tells its transaction that it changes rows. */
private[interlock] trait ChangesRows {

  /** Tells the transaction of an UPDATE or DELETE what it does. One that marks rows in deletion
    * vectors may find none.
    *
    * @param isConfined
    *   see [[Unwritten]]
    */
  protected def tell(
      transaction: OptimisticTransaction,
      op: DeltaOperations.Operation,
      marksRows: Boolean,
      isConfined: Boolean
  ): Boolean = {
    transaction match {
      case ours: InterlockTransaction =>
        ours.changes(Unwritten(op, changesData = !marksRows, marksRows, isConfined))
      case _ =>
    }
    marksRows
  }

  /** Delta would write rows without columns that have been added since they were analysed, as for a
    * `DeltaTable` that was made before.
    */
  protected def refuseNewColumns(transaction: OptimisticTransaction, analyzed: Metadata): Unit = {
    val now = transaction.snapshot.schema
    def columns(schema: StructType) = SchemaMergingUtils.explode(schema).map(_._1).toSet
    if (!columns(now).subsetOf(columns(analyzed.schema)))
      throw DeltaErrors.schemaChangedSinceAnalysis(analyzed.schema, now)
  }
}
