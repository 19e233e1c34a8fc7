package io.interlock.spark.errors

import io.delta.exceptions.ProtocolChangedException
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}
import org.apache.spark.sql.delta.DeltaAnalysisException

/** Two jobs that create one table: what Delta says to the second one, and how to see that the first
  * one has made it.
  */
private[spark] object MadeMeanwhile {

  /** The table's entry in the catalog follows its first version. */
  private val MillisUntilListed = 5000L

  /** Matches Delta's refusal to create a table that another job has begun to make. */
  def unapply(failed: Throwable): Boolean = failed match {
    case _: ProtocolChangedException => true
    case full: DeltaAnalysisException =>
      full.getErrorClass == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    case _ => false
  }

  /** The table, as soon as the catalog has it. */
  def table(catalog: TableCatalog, name: Identifier): Option[Table] = {
    val giveUp = System.nanoTime() + MillisUntilListed * 1000000
    while (!catalog.tableExists(name) && System.nanoTime() < giveUp) Thread.sleep(20)
    Option.when(catalog.tableExists(name))(catalog.loadTable(name))
  }
}
