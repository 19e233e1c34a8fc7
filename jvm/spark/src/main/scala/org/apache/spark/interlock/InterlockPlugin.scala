package org.apache.spark.interlock

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.internal.Logging

/** The one-line way in: `spark.plugins=org.apache.spark.interlock.InterlockPlugin`.
  *
  * Appends Delta's and Interlock's session extensions to those that are configured and sets the
  * session catalog, unless the user has set one that is not Delta's, and the catalog of procedures. Lives below `org.apache.spark`
  * to reach the configuration of the starting context.
  */
final class InterlockPlugin extends SparkPlugin {
  import InterlockPlugin._

  override def driverPlugin(): DriverPlugin = new DriverPlugin with Logging {
    override def init(sc: SparkContext, context: PluginContext): JMap[String, String] = {
      sc.conf.set(Extensions, extensions(sc.conf.get(Extensions, "")))
      sc.conf.getOption(Catalog) match {
        case None | Some(DeltaCatalog) => sc.conf.set(Catalog, OurCatalog)
        case Some(OurCatalog) =>
        case Some(other) => logWarning(s"$Catalog stays $other; Interlock would set $OurCatalog.")
      }
      sc.conf.setIfMissing(Procedures, OurProcedures)
      Collections.emptyMap()
    }
  }

  override def executorPlugin(): ExecutorPlugin = null
}

private object InterlockPlugin {
  val Extensions = "spark.sql.extensions"
  val Catalog = "spark.sql.catalog.spark_catalog"
  val DeltaCatalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
  val OurCatalog = "io.interlock.spark.InterlockCatalog"
  val Procedures = "spark.sql.catalog.interlock"
  val OurProcedures = "io.interlock.spark.procedures.InterlockProcedures"
  val DeltaExtension = "io.delta.sql.DeltaSparkSessionExtension"
  val OurExtension = "io.interlock.spark.InterlockExtension"

  /** Interlock's own goes to the end, as Delta's must come before it. */
  def extensions(configured: String): String = {
    val others = configured.split(',').map(_.trim).filterNot(Set("", OurExtension))
    (others :+ DeltaExtension :+ OurExtension).distinct.mkString(",")
  }
}
