package org.apache.spark.sql.delta.interlock.statement

import scala.util.Try

import io.interlock.rules.Policy
import io.interlock.spark.properties.TablePolicy
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.files.TahoeFileIndex

/** The policy of a table, if this session has it. */
object SessionPolicy {
  def of(table: TahoeFileIndex): Option[Policy] = of(table.metadata)

  def of(table: Metadata): Option[Policy] =
    Try(TablePolicy.policyOf(table.configuration)).toOption.flatten
}
