package io.interlock.spark

import java.nio.file.Path

import scala.util.Try

import io.interlock.coordinator.LinkProbe
import io.interlock.spark.commits.Coordinators
import io.interlock.spark.history.NamedTable
import io.interlock.spark.properties.TableProperties
import org.apache.spark.sql.SparkSession

/** What Interlock knows about the machine and a table's coordinator: for the Python package. */
object Inspect {

  /** What is wrong with hard links in a folder of this machine; null if they work. */
  def linkFault(folder: String): String = LinkProbe.fault(Path.of(folder)).orNull

  /** Why the coordinator of a table takes no commits of this session, null if it does. */
  def coordinatorFault(session: SparkSession, table: String): String = {
    val loaded = NamedTable.load(session, table, "interlock doctor")
    val now = NamedTable.snapshot(session, loaded, "interlock doctor")
    Try(
      TableProperties.coordinatorOf(now.metadata.configuration)
        .foreach(Coordinators.check(session, now.deltaLog, _))
    ).failed.map(_.getMessage).getOrElse(null)
  }
}
