package org.apache.spark.interlock.ui

import org.apache.spark.scheduler.SparkListener
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.{SparkUI, SparkUITab}
import org.apache.spark.util.kvstore.KVStore
import org.apache.spark.{SparkConf, SparkContext}

/** The tab "Interlock" of an application's UI. */
final private[ui] class InterlockTab(ui: SparkUI, store: KVStore)
    extends SparkUITab(ui, "interlock") {
  attachPage(new VerdictsPage(this, store))
}

object InterlockTab {

  /** Attaches the tab to the UI of the running context, once. */
  def attach(): Unit = synchronized {
    for {
      context <- SparkContext.getActive
      ui <- context.ui
      if !ui.getTabs.exists(_.isInstanceOf[InterlockTab])
    } {
      val store = context.statusStore.store
      context.listenerBus.addToStatusQueue(new CommitListener(store))
      ui.attachTab(new InterlockTab(ui, store))
    }
  }
}

/** Attaches the tab in the History Server, to applications that committed under a policy. The server
  * finds it by `META-INF/services`.
  */
final class InterlockHistoryPlugin extends AppHistoryServerPlugin {
  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Seq(new CommitListener(store))

  override def setupUI(ui: SparkUI): Unit = {
    val store = ui.store.store
    if (store.count(classOf[CommitCounts]) > 0) ui.attachTab(new InterlockTab(ui, store))
  }
}
