package org.apache.spark.sql.delta.interlock.statement

import io.delta.spark.internal.v2.catalog.DeltaV2Table
import org.apache.spark.sql.connector.catalog.Table

/** `t CHANGES FROM VERSION n`, which Spark has from 4.2 on. */
private[interlock] object KernelChanges {
  def unapply(table: Table): Option[(DeltaV2Table, Long)] = None
}
