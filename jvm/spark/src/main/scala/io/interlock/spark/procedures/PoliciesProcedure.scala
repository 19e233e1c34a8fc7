package io.interlock.spark.procedures

import io.interlock.spark.properties.SessionPolicies
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** The matrices of the policies that the session knows, cell by cell. */
private[procedures] object PoliciesProcedure extends InterlockProcedure {
  override val name: String = "policies"
  override val parameters: Array[ProcedureParameter] = Array.empty
  override val outputType: StructType = new StructType()
    .add("policy", StringType, nullable = false)
    .add("earlier", StringType, nullable = false)
    .add("later", StringType, nullable = false)
    .add("rule", StringType, nullable = false)
    .add("verdict", StringType, nullable = false)
    .add("source", StringType, nullable = false)
    .add("compaction", StringType, nullable = false)
    .add("isolation", StringType, nullable = false)
    .add("digest", StringType, nullable = false)
  override val description: String =
    "What becomes of a later job after an earlier one, under each policy."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] =
    for (policy <- SessionPolicies.all.iterator; cell <- policy.cells)
      yield Row(
        policy.name,
        cell.earlier.name,
        cell.later.name,
        cell.label,
        cell.verdict.name,
        policy.source,
        policy.compaction.name,
        policy.isolation,
        policy.digest
      )
}
