package org.apache.spark.sql.delta.interlock.statement

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import io.delta.spark.internal.v2.read.changelog.DeltaV2Changelog
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.ChangelogTable

/** Matches `t CHANGES FROM VERSION n` if its end was the newest version when the query was analysed.
  * Gives the table and the end.
  */
private[interlock] object KernelChanges {
  def unapply(table: Table): Option[(DeltaV2Table, Long)] = Some(table).collect {
    case ChangelogTable(changes: DeltaV2Changelog, _, _) =>
      (of(changes, "deltaV2Table").asInstanceOf[DeltaV2Table], of(changes, "endVersion"))
  }.collect { case (read, end: Long) if end >= read.version.toLong => (read, end) }

  /** A private field, for which the class has no method. */
  private def of(changes: DeltaV2Changelog, field: String): Any = {
    val found = classOf[DeltaV2Changelog].getDeclaredField(field)
    found.setAccessible(true)
    found.get(changes)
  }
}
