package io.interlock.spark.procedures

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{ArrayType, StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** The way back to plain Delta. */
private[procedures] object RemovePolicyProcedure extends InterlockProcedure {
  private val choice = PolicyRemoval.choices.map(feature => s"'$feature'").mkString(" or ")
  private val keep = ProcedureParameter
    .in("keep", ArrayType(StringType))
    .comment(s"table features that stay: $choice; none by default")
    .defaultValue("NULL")
    .build()

  override val name: String = "remove_policy"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, keep)
  override val outputType: StructType = PolicyRemoval.schema
  override val description: String =
    "Ends a table's policy, and drops the table features that it brought."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val kept = arguments.texts(keep.name).map { named =>
      PolicyRemoval.choices.find(named.contains(_)).getOrElse(
        throw InterlockException.invalidArgument("a kept feature", named.getOrElse("NULL"), choice)
      )
    }
    PolicyRemoval.run(session, arguments.table, name, kept.toSet).iterator
  }
}
