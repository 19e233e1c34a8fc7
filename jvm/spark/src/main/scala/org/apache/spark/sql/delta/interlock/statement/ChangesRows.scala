package org.apache.spark.sql.delta.interlock.statement

import com.databricks.spark.util.TagDefinition
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.metering.{DeltaLogging, DeltaLoggingProvider}
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.delta.{DeltaErrors, DeltaOperations, OptimisticTransaction}
import org.apache.spark.sql.types.StructType

/** A command that tells its transactions that they change rows. Those that it has given up are no
  * longer running when it ends.
  */
private[interlock] trait ChangesRows extends DeltaLogging {
  @volatile private var begun = List.empty[OptimisticTransaction]

  /** To be called with each transaction of the command. */
  protected def begin(transaction: OptimisticTransaction): Unit = begun ::= transaction

  /** Delta runs its command in it, and cannot be overridden around it. */
  override protected def recordDeltaOperation[A](
      provider: DeltaLoggingProvider,
      opType: String,
      tags: Map[TagDefinition, String]
  )(work: => A): A =
    try super.recordDeltaOperation(provider, opType, tags)(work)
    finally if (ChangesRows.whole(opType)) begun.foreach(RunningTransactions.end)

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
    begin(transaction)
    transaction match {
      case ours: InterlockTransaction =>
        ours.writes.changes(Unwritten(op, changesData = !marksRows, marksRows, isConfined))
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

private object ChangesRows {
  private val whole = Set("delta.dml.update", "delta.dml.delete", "delta.dml.merge")
}
