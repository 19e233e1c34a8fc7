package io.interlock.spark.properties

import org.apache.spark.internal.Logging
import org.apache.spark.sql.delta.ColumnWithDefaultExprUtils
import org.apache.spark.sql.types.StructType

/** Warns if a policy is set on a table with identity columns, whose inserts conflict under every
  * policy.
  */
object IdentityColumns extends Logging {

  /** @param before
    *   the table's properties before the statement, and `after` it
    */
  def warn(
      table: String,
      schema: StructType,
      before: Map[String, String],
      after: Map[String, String]
  ): Unit = {
    val sets = TablePolicy.named(after)
    if (
      sets.nonEmpty && sets != TablePolicy.named(before) &&
      ColumnWithDefaultExprUtils.hasIdentityColumn(schema)
    )
      logWarning(
        s"$table has an identity column: every insert changes the table's metadata, so two " +
          s"concurrent writers conflict whatever the policy ${sets.get} says."
      )
  }
}
