package org.apache.spark.interlock

import java.util.{Collections, Map => JMap}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}

/** The one-line way in: `spark.plugins=org.apache.spark.interlock.InterlockPlugin`.
  *
  * Appends Delta's and Interlock's session extensions to those that are configured and sets the
  * session catalog, unless the user has set another. Lives below `org.apache.spark` to reach the
  * configuration of the starting context.
  */
final class InterlockPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPlugin {
    override def init(sc: SparkContext, context: PluginContext): JMap[String, String] = {
      val conf = sc.conf
      val configured = conf.get(InterlockPlugin.Extensions, "").split(',').map(_.trim)
      val all = configured.filter(_.nonEmpty) ++ InterlockPlugin.Ours
      conf.set(InterlockPlugin.Extensions, all.distinct.mkString(","))
      conf.setIfMissing(InterlockPlugin.Catalog, "io.interlock.spark.InterlockCatalog")
      Collections.emptyMap()
    }
  }

  override def executorPlugin(): ExecutorPlugin = null
}

private object InterlockPlugin {
  val Extensions = "spark.sql.extensions"
  val Catalog = "spark.sql.catalog.spark_catalog"
  val Ours = Seq("io.delta.sql.DeltaSparkSessionExtension", "io.interlock.spark.InterlockExtension")
}
