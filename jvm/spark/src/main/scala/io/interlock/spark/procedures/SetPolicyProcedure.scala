package io.interlock.spark.procedures

import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.TablePolicy
import io.interlock.spark.text.SqlText
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{Row, SparkSession}

/** ALTER TABLE ... SET or UNSET TBLPROPERTIES of a table's policy, with all that it checks. */
private[procedures] object SetPolicyProcedure extends InterlockProcedure {
  private val policy =
    ProcedureParameter.in("policy", StringType).comment("its name; NULL removes it").build()

  override val name: String = "set_policy"
  override val parameters: Array[ProcedureParameter] = Array(Parameters.Table, policy)
  override val outputType: StructType =
    new StructType().add("policy", StringType).add("previous", StringType)
  override val description: String = "Gives a table a conflict policy, or takes it away."

  override protected def run(session: SparkSession, arguments: Arguments): Iterator[Row] = {
    val table = NamedTable.inSql(arguments.table)
    val previous = NamedTable.policy(session, arguments.table, name)
    val wanted = arguments.text(policy.name)
    val key = SqlText.literal(TablePolicy.PolicyKey)
    session.sql(wanted.fold(s"ALTER TABLE $table UNSET TBLPROPERTIES IF EXISTS ($key)") { named =>
      s"ALTER TABLE $table SET TBLPROPERTIES ($key = ${SqlText.literal(named)})"
    })
    Iterator(Row(wanted.orNull, previous.orNull))
  }
}
