package io.interlock.spark.ranges

import io.interlock.spark.properties.TablePolicy
import org.apache.spark.sql.delta.catalog.DeltaTableV2

/** Times after a table's last commit. Delta refuses them; for a table with a policy they mean its
  * latest version.
  */
object AfterLastCommit {

  /** The version to read at a time, if the time is after the last commit and the table has a
    * policy.
    *
    * @param millis
    *   since 1970 UTC
    */
  def version(table: DeltaTableV2, millis: Long): Option[Long] = {
    val latest = table.update()
    val hasPolicy = TablePolicy.named(latest.metadata.configuration).nonEmpty
    Option.when(hasPolicy && millis > latest.timestamp)(latest.version)
  }
}
