package io.interlock.spark.procedures

import io.interlock.spark.audit.Explanation
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** One audit record and what would have let both jobs through. */
private[procedures] object ExplainConflictProcedure extends InterlockProcedure {
  private val txnId = ProcedureParameter
    .in("txn_id", StringType)
    .comment("a transaction's id, from the error, from conflicts or from the history")
    .build()

  override val name: String = "explain_conflict"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, txnId)
  override val outputType: StructType = Explanation.schema
  override val description: String =
    "Why a commit was rejected, or how it passed others, and what would have let both through."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val id = arguments.needed(txnId.name, "the transaction", "a transaction's id")
    Iterator(AuditedTable.explain(session, arguments.table, id, name))
  }
}
